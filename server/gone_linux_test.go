package server

import (
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
)

// TestAttackUnnoticedDisconnects: a client has sent something after its request, such as the next one or an empty line,
// and disconnects. net/http reads no further while the request runs, and so does not notice. The control is a client
// that stays.
func TestAttackUnnoticedDisconnects(t *testing.T) {
	t.Parallel() // it waits for most of its time
	for _, encrypted := range []bool{false, true} {
		for _, withTokens := range []bool{false, true} {
			for _, leaves := range []bool{false, true} {
				name := "TLS: " + strconv.FormatBool(encrypted) + ", tokens: " + strconv.FormatBool(withTokens) +
					", leaves: " + strconv.FormatBool(leaves)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					options, token := Options{Limits: Limits{Drain: time.Millisecond}}, ""
					if withTokens {
						options.Tokens = tokens(t)
						token, _ = issued(t, options.Tokens, auth.Token{Scopes: []auth.Scope{auth.Call}})
					}
					began, ended := make(chan struct{}), make(chan struct{})
					wait := Endpoint{Pattern: "/wait", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						close(began)
						<-r.Context().Done()
						close(ended)
					})}
					var c net.Conn
					if encrypted {
						options.TLS = certificate(t)
						c = dialTLS(t, start(t, options, wait).address)
					} else {
						c = dial(t, start(t, options, wait))
					}
					send(t, c, "GET /wait HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
					<-began
					send(t, c, "\r\n")
					time.Sleep(200 * time.Millisecond) // net/http reads the next byte
					if leaves {
						require.NoError(t, c.Close())
					}
					select {
					case <-ended:
						assert.True(t, leaves, "its request has ended")
					case <-time.After(map[bool]time.Duration{true: 10 * time.Second, false: time.Second}[leaves]):
						assert.False(t, leaves, "its request goes on")
					}
				})
			}
		}
	}
}
