package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
)

// TestAttackUnreadLongAnswers: a client with a token does not read a long answer.
func TestAttackUnreadLongAnswers(t *testing.T) {
	for _, test := range []struct {
		name  string
		stall time.Duration
		in    bool
	}{
		{"guarded", 300 * time.Millisecond, true},
		{"control: for as long as the client likes", time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			known := tokens(t)
			token, _ := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Read}})
			ended := make(chan struct{}, 1)
			long := Endpoint{Pattern: "/long", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(make([]byte, 64<<20)) // more than the system holds
				ended <- struct{}{}
			})}
			r := start(t, Options{TLS: certificate(t), Tokens: known, Limits: Limits{Stall: test.stall, Drain: time.Millisecond}}, long)
			send(t, dialTLS(t, r.address), "GET /long HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
			select {
			case <-ended:
				assert.True(t, test.in, "the handler still writes")
			case <-time.After(map[bool]time.Duration{true: 20 * time.Second, false: time.Second}[test.in]):
				assert.False(t, test.in, "the handler still writes")
			}
		})
	}
}

// A stream of events may be silent for longer than its reader may take for one.
func TestSilentStreams(t *testing.T) {
	quiet := Endpoint{Pattern: "/events", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 2 {
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(400 * time.Millisecond)
		}
		_, _ = io.WriteString(w, "data: the end\n\n")
	})}
	r := start(t, Options{TLS: certificate(t), Limits: Limits{Stall: 100 * time.Millisecond}}, quiet)
	assert.Equal(t, "data: x\n\ndata: x\n\ndata: the end\n\n", r.do(t, "GET", "/events", "").body)
}

func certificate(t *testing.T) *tls.Config {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)
	return &tls.Config{Certificates: certified.TLS.Certificates}
}

// TestSlowReaders: a client that reads a long answer slowly and steadily gets all of it, although that takes much
// longer than a client may stall.
func TestSlowReaders(t *testing.T) {
	const long = 8 << 20
	const stall = time.Second
	whole := Endpoint{Pattern: "/long", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, long)) })}
	for name, options := range map[string]Options{"plain": {}, "over TLS": {TLS: &tls.Config{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if options.TLS != nil {
				options.TLS.Certificates = certificate(t).Certificates
			}
			options.Limits.Stall = stall
			r := start(t, options, whole)
			r.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := new(net.Dialer).DialContext(ctx, network, address)
				if err == nil {
					err = c.(*net.TCPConn).SetReadBuffer(64 << 10)
				}
				return c, err
			}
			response, err := r.client.Get(r.url + "/long")
			require.NoError(t, err)
			defer response.Body.Close()
			began, n := time.Now(), int64(0)
			for n < long {
				read, err := io.CopyN(io.Discard, response.Body, 64<<10)
				n += read
				require.NoError(t, err, "after %d bytes", n)
				time.Sleep(20 * time.Millisecond)
			}
			assert.Greater(t, time.Since(began), 2*stall)
		})
	}
}
