package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestRequestsMayTakeLong: the time limits for headers and bodies do not end a request that has arrived whole, with or
// without a body, over HTTP/1.1, TLS and HTTP/2. The next request on the connection is answered, too.
func TestRequestsMayTakeLong(t *testing.T) {
	limits := Limits{Header: 100 * time.Millisecond, Body: 200 * time.Millisecond, Stall: 300 * time.Millisecond}
	slow := Endpoint{Pattern: "/slow", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusTeapot)
		case <-time.After(time.Second):
		}
	})}
	for name, protocols := range map[string]string{"http/1.1": "", "http/1.1 over TLS": "http/1.1", "http/2": "h2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := Options{Limits: limits}
			if protocols != "" {
				options.TLS = certificate(t)
			}
			r := start(t, options, slow)
			r.client.Transport.(*http.Transport).ForceAttemptHTTP2 = protocols == "h2"
			for _, method := range []string{"GET", "POST", "GET"} {
				body := ""
				if method == "POST" {
					body = "a body"
				}
				got := r.do(t, method, "/slow", body)
				assert.Equal(t, http.StatusOK, got.status, method)
			}
		})
	}
}
