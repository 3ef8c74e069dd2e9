package server

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
)

// TestAttackStallsOutliveTokens: a client does not read its answer, and its token is revoked. Its answer ends soon,
// and the tenant has its place again. The control is a token that works.
func TestAttackStallsOutliveTokens(t *testing.T) {
	t.Parallel() // it waits for most of its time
	endless := func(w http.ResponseWriter, _ *http.Request) error {
		for {
			if _, err := w.Write(make([]byte, 8<<10)); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
	}
	small := func(w http.ResponseWriter, _ *http.Request) error {
		for {
			if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for _, test := range []struct {
		name    string
		answer  func(http.ResponseWriter, *http.Request) error
		revoked bool
	}{
		{"a long answer", endless, true},
		{"small events without end", small, true},
		{"control", endless, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			state := stateFolder(t)
			of := tokensIn(t, state)
			token, id := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
			other, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
			began, ended := make(chan struct{}), make(chan error, 1)
			stall := Endpoint{Pattern: "/stall", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(began)
				ended <- test.answer(w, r)
			})}
			options := Options{TLS: certificate(t), Tokens: of, Limits: Limits{Requests: 1, Stall: time.Hour, Drain: time.Millisecond}}
			r := start(t, options, stall, Endpoint{Pattern: "/echo", Handler: http.HandlerFunc(echo)})
			send(t, dialTLS(t, r.address), "GET /stall HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
			<-began
			wait := 2 * time.Second
			if test.revoked {
				_, err := tokensIn(t, state).Revoke(t.Context(), id) // by another process
				require.NoError(t, err)
				wait = 8 * time.Second // a second, and what a busy machine takes
			}
			var err error
			select {
			case err = <-ended:
			case <-time.After(wait):
			}
			isFree := func() bool {
				return r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+other).status == http.StatusOK
			}
			if !test.revoked {
				assert.NoError(t, err)
				assert.False(t, isFree())
				return
			}
			require.Error(t, err, "the handler still writes")
			assert.Eventually(t, isFree, 5*time.Second, 50*time.Millisecond, "the tenant has its place again")
		})
	}
}
