package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
)

// TestAttackUnfinishedBodies: a tenant sends many bodies that lack the last byte, with several tokens. They take a
// bounded number of bytes, and those of other tenants have room. 256 bodies of 16 MiB are 4 GiB. The controls are as
// many bodies of as many tenants, up to the bound of all.
func TestAttackUnfinishedBodies(t *testing.T) {
	t.Parallel() // it waits for most of its time
	const size, requests = 1 << 20, 20
	for _, test := range []struct {
		name    string
		tenants int
		want    int // bodies that are read
	}{{"of one tenant", 1, tenantBodies}, {"control: of several tenants", 3, 3 * tenantBodies}, {"of many tenants", requests, tenants * tenantBodies}} {
		t.Run(test.name, func(t *testing.T) {
			of := tokens(t)
			var arrived, refused atomic.Int64
			door := Endpoint{Pattern: "/read", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body bytes.Buffer
				for {
					n, err := io.CopyN(&body, r.Body, 4<<10)
					arrived.Add(n)
					if errors.Is(err, memory.ErrFull) {
						refused.Add(1)
						arrived.Add(-int64(body.Len()))
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					if err != nil {
						return
					}
				}
			})}
			r := start(t, Options{Tokens: of, Limits: Limits{BodyBytes: size, Drain: time.Millisecond}}, door, Endpoint{Pattern: "/echo", Handler: http.HandlerFunc(echo)})
			for i := range requests {
				token, _ := issued(t, of, auth.Token{Tenant: fmt.Sprint("tenant ", i%test.tenants), Scopes: []auth.Scope{auth.Read}})
				c := dial(t, r)
				go func() {
					_, _ = fmt.Fprintf(c, "POST /read HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", token, size)
					_, _ = c.Write(make([]byte, size-1)) // the server may close the connection
				}()
			}
			require.Eventually(t, func() bool {
				left := requests - int(refused.Load())
				return left <= test.want+1 && arrived.Load() >= int64(left)*(size-8<<10) || left <= test.want
			}, 10*time.Second, time.Millisecond)
			time.Sleep(100 * time.Millisecond)
			assert.LessOrEqual(t, arrived.Load(), int64(test.want*size+requests*(64<<10)))
			assert.Positive(t, refused.Load())
			assert.Less(t, int(refused.Load()), requests)
			other, _ := issued(t, of, auth.Token{Tenant: "other", Scopes: []auth.Scope{auth.Read}})
			assert.Equal(t, http.StatusOK, r.do(t, "POST", "/echo", "short", "Authorization", "Bearer "+other).status)
		})
	}
}

// TestAnswersAreGivenBack: the bytes of an answer count until its handler has ended, and those of one tenant's are no
// other's.
func TestAnswersAreGivenBack(t *testing.T) {
	of := tokens(t)
	mine, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
	others, _ := issued(t, of, auth.Token{Tenant: "other", Scopes: []auth.Scope{auth.Read}})
	const size = 1 << 20
	r := start(t, Options{Tokens: of, Limits: Limits{BodyBytes: size, Drain: time.Millisecond, Stall: time.Minute}}, Endpoint{Pattern: "/long", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if memory.Reserve(r.Context(), tenantBodies*size) == nil {
			_, _ = w.Write(make([]byte, 16*size))
		}
	})})
	ask := func(token string) net.Conn {
		c := dial(t, r)
		require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4<<10))
		send(t, c, "GET /long HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		return c
	}
	begins := func(c net.Conn, within time.Duration) bool {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(within)))
		_, err := c.Read(make([]byte, 1))
		return err == nil
	}
	first := ask(mine)
	require.True(t, begins(first, 30*time.Second))
	second := ask(mine)
	assert.False(t, begins(second, 200*time.Millisecond), "it waits")
	assert.True(t, begins(ask(others), 30*time.Second))
	require.NoError(t, first.Close())
	assert.True(t, begins(second, 30*time.Second))
}

// TestAttackHeadersThatAreKept: what outlives a request, such as a run that waits or a session of MCP, keeps its
// context, with which it can check the token, and not its header, which was 1 MB for each session. The control keeps
// the request.
func TestAttackHeadersThatAreKept(t *testing.T) {
	of := tokens(t)
	token, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
	for name, test := range map[string]struct {
		options Options
		request bool // it is kept
	}{
		"with a token":                       {Options{Tokens: of}, false},
		"without one":                        {Options{Tokens: tokens(t), Open: true}, false},
		"control: a request with a token":    {Options{Tokens: of}, true},
		"control: a request that needs none": {Options{Tokens: tokens(t), Open: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var kept []any
			var headers []weak.Pointer[string]
			r := start(t, test.options, Endpoint{Pattern: "/keep", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				headers = append(headers, weak.Make(&r.Header["Long"][0]))
				if test.request {
					kept = append(kept, r)
				} else {
					kept = append(kept, r.Context())
				}
			})})
			ask := func(path string) {
				assert.Equal(t, http.StatusOK, r.do(t, "GET", path, "", "Authorization", "Bearer "+token, "Long", strings.Repeat("x", 10<<10)).status)
			}
			for range 10 {
				ask("/keep")
			}
			ask("/healthz") // net/http keeps the last request of a connection
			held := func() (count int) {
				runtime.GC()
				mu.Lock()
				defer mu.Unlock()
				for _, one := range headers {
					if one.Value() != nil {
						count++
					}
				}
				return count
			}
			if test.request {
				assert.Equal(t, 10, held())
			} else {
				assert.Eventually(t, func() bool { return held() <= 1 }, 5*time.Second, 10*time.Millisecond)
			}
			runtime.KeepAlive(kept)
		})
	}
}
