package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestRequestsMayTakeLong: the time limits for headers and bodies do not end a request that has arrived whole, with or
// without a body, with or without TLS. The next
// request on the connection is answered, too.
func TestRequestsMayTakeLong(t *testing.T) {
	limits := Limits{Header: 100 * time.Millisecond, Body: 200 * time.Millisecond, Stall: 300 * time.Millisecond}
	slow := Endpoint{Pattern: "/slow", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusTeapot)
		case <-time.After(time.Second):
		}
	})}
	for name, encrypted := range map[string]bool{"plain": false, "over TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := Options{Limits: limits}
			if encrypted {
				options.TLS = certificate(t)
			}
			r := start(t, options, slow)
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
