package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections is a listener that holds at most a number of connections at a time. If there are as many, one more ends the one
// that has waited for a request for longest, so that nobody keeps others out with connections that do nothing. If all have
// requests, it waits until one does not.
type connections struct {
	net.Listener
	most int

	mu      sync.Mutex
	changed sync.Cond
	held    map[*connection]time.Time // since when they wait for a request; zero while they have one
	closed  bool
}

func newConnections(l net.Listener, most int) *connections {
	c := &connections{Listener: l, most: most, held: map[*connection]time.Time{}}
	c.changed.L = &c.mu
	return c
}

// Accept implements [net.Listener].
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.held) >= c.most && !c.closed {
		if waiting := c.longest(); waiting != nil {
			delete(c.held, waiting)
			_ = waiting.Conn.Close() // net/http notices
			continue
		}
		c.changed.Wait()
	}
	if c.closed {
		_ = accepted.Close()
		return nil, net.ErrClosed
	}
	held := &connection{accepted, c}
	c.held[held] = time.Now()
	return held, nil
}

// longest returns the connection that has waited for a request for longest, or nil if none waits. The caller must hold c.mu.
func (c *connections) longest() (found *connection) {
	for one, since := range c.held {
		if !since.IsZero() && (found == nil || since.Before(c.held[found])) {
			found = one
		}
	}
	return found
}

// Close implements [net.Listener].
func (c *connections) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.changed.Broadcast()
	return c.Listener.Close()
}

// follow is told of the states of connections by net/http.
func (c *connections) follow(of net.Conn, state http.ConnState) {
	if encrypted, ok := of.(*tls.Conn); ok {
		of = encrypted.NetConn()
	}
	one, ok := of.(*connection)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.held[one]; !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.held[one] = time.Time{}
	case http.StateIdle:
		c.held[one] = time.Now()
		c.changed.Broadcast()
	}
}

// connection is one that is held.
type connection struct {
	net.Conn
	of *connections
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.held, c)
	c.of.mu.Unlock()
	c.of.changed.Broadcast()
	return c.Conn.Close()
}
