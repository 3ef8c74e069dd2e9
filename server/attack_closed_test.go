package server

import (
	"bufio"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// TestAttackClosedConnections: clients close connections of HTTP/2 whose streams are open, or were reset. Timers of
// net/http must not keep the memory of these connections, which may be megabytes each.
func TestAttackClosedConnections(t *testing.T) {
	for _, test := range []struct {
		name   string
		path   string
		attack func(t *testing.T, c *client2, began <-chan struct{}) // returns when the connection may be closed
	}{
		{"an open stream", "/open", func(_ *testing.T, _ *client2, began <-chan struct{}) { <-began }},
		{"a stream that was reset before its handler ended", "/open", func(t *testing.T, c *client2, began <-chan struct{}) {
			<-began
			require.NoError(t, c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
			time.Sleep(200 * time.Millisecond) // the handler ends
		}},
		{"bodies whose streams were reset before their handlers began", "/short", func(t *testing.T, c *client2, _ <-chan struct{}) {
			for range 200 {
				stream := c.next
				require.NoError(t, c.ask("/short", false))
				require.NoError(t, c.framer.WriteRSTStream(stream, http2.ErrCodeCancel))
				time.Sleep(time.Millisecond) // else net/http ends the connection, for it starts no more handlers
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			began, connections := make(chan struct{}), make(chan weak.Pointer[connection], 1)
			note := func(r *http.Request) {
				select {
				case connections <- weak.Make(connectionFor(r)):
				default:
				}
			}
			open := Endpoint{Pattern: "/open", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				note(r)
				close(began)
				<-r.Context().Done()
			})}
			short := Endpoint{Pattern: "/short", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { note(r) })}
			limits := Limits{Stall: time.Hour, Idle: time.Hour, Body: time.Hour, Refusal: time.Hour}
			r := start(t, Options{TLS: certificate(t), Limits: limits}, open, short)
			c := dial2(t, r.address, 0)
			go func() { // or net/http waits until its answers are read
				for {
					if _, err := c.framer.ReadFrame(); err != nil {
						return
					}
				}
			}()
			if test.path == "/open" {
				require.NoError(t, c.ask("/open", true))
			}
			test.attack(t, c, began)
			of := <-connections
			require.NoError(t, c.conn.Close())
			assert.Eventually(t, func() bool {
				runtime.GC()
				return of.Value() == nil
			}, 10*time.Second, 50*time.Millisecond, "something keeps the connection")
		})
	}
}

// TestIdleConnections: connections over HTTP/1.1 and HTTP/2 end when they have been idle for long, and not while they
// have requests.
func TestIdleConnections(t *testing.T) {
	t.Parallel() // it waits for most of its time
	release := make(chan struct{})
	slow := Endpoint{Pattern: "/slow", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })}
	r := start(t, Options{TLS: certificate(t), Limits: Limits{Idle: time.Second}}, slow)
	one, two := dialTLS(t, r.address), dial2(t, r.address, 1<<20)
	began := time.Now()
	send(t, one, "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, two.ask("/slow", true))
	ended := make(chan struct{}, 2)
	answered := make(chan struct{}, 2)
	go func() {
		line, err := bufio.NewReader(one).ReadString('\n')
		assert.NoError(t, err)
		assert.Contains(t, line, "200")
		answered <- struct{}{}
		_, _ = io.Copy(io.Discard, one)
		ended <- struct{}{}
	}()
	go func() {
		for {
			frame, err := two.framer.ReadFrame()
			if err != nil {
				ended <- struct{}{}
				return
			}
			if frame, ok := frame.(*http2.HeadersFrame); ok && frame.StreamEnded() {
				answered <- struct{}{}
			}
		}
	}()
	time.Sleep(2 * time.Second)
	assert.Empty(t, ended)
	close(release)
	<-answered
	<-answered
	for range 2 {
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("an idle connection is kept")
		}
	}
	assert.Greater(t, time.Since(began), 2500*time.Millisecond)
}
