package server

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOnlyHTTP1: clients that know both use HTTP/1.1, also if the program's configuration names HTTP/2. Those that know
// HTTP/2 only are refused in the handshake, or are told so.
func TestOnlyHTTP1(t *testing.T) {
	for name, protocols := range map[string][]string{"no protocols": nil, "protocols of the program": {"h2", "http/1.1"}} {
		t.Run(name, func(t *testing.T) {
			config := certificate(t)
			config.NextProtos = protocols
			r := start(t, Options{TLS: config})
			r.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
			response, err := r.client.Get(r.url + "/healthz")
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, "HTTP/1.1", response.Proto)
			assert.Equal(t, http.StatusOK, response.StatusCode)

			_, err = tls.Dial("tcp", r.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			assert.ErrorContains(t, err, "no application protocol")

			c := dialTLS(t, r.address) // without a choice of a protocol
			send(t, c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
			require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
			in := bufio.NewReader(c)
			response, err = http.ReadResponse(in, nil)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, response.StatusCode, 400)
			_, err = io.Copy(io.Discard, in)
			require.NoError(t, err)
			assert.True(t, response.Close)
		})
	}
}
