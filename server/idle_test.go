package server

import (
	"bufio"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestIdleConnections: a connection ends when it has been idle for long, and not while it has a request.
func TestIdleConnections(t *testing.T) {
	t.Parallel() // it waits for most of its time
	release := make(chan struct{})
	slow := Endpoint{Pattern: "/slow", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })}
	r := start(t, Options{TLS: certificate(t), Limits: Limits{Idle: time.Second}}, slow)
	c := dialTLS(t, r.address)
	send(t, c, "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answered, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		line, err := bufio.NewReader(c).ReadString('\n')
		assert.NoError(t, err)
		assert.Contains(t, line, "200")
		close(answered)
		_, _ = io.Copy(io.Discard, c)
	}()
	time.Sleep(2 * time.Second)
	select {
	case <-ended:
		require.Fail(t, "the connection has a request")
	default:
	}
	close(release)
	<-answered
	began := time.Now()
	select {
	case <-ended:
		assert.Greater(t, time.Since(began), time.Second/2)
	case <-time.After(10 * time.Second):
		t.Error("an idle connection is kept")
	}
}
