package server

import (
	"net/http"
	"time"
)

// The memory of net/http and crypto/tls can be thirty times the length of the bytes that they have read, such as for a
// header of many short fields or for the first message of a handshake. So before a handler is called, a connection
// sends at most helloBytes until it has greeted, and handshakeBytes and a header in all. And if all connections hold
// more than headerShare for each that there may be, those end that have held more than half as much for longest. No
// client ends that needs less, and none whose header is whole soon, though crypto/tls reads 16 KiB of its body with it.
const (
	helloBytes     = 16 << 10 // clients send 2 KiB, and more with long session tickets
	handshakeBytes = 64 << 10 // with the certificates of clients
	headerShare    = 8 << 10
)

// countHeader counts bytes that were read, and ends connections that have too many. What follows the header is not
// kept, so that it does not count. The caller must hold the lock of connections.
func (c *connection) countHeader(bytes int, now time.Time) {
	if c.handled.Load() {
		return
	}
	if c.head == 0 {
		c.headSince = now
	}
	before := min(c.head, c.of.header)
	c.head += bytes
	c.of.headers += min(c.head, c.of.header) - before
	if c.head > c.of.header+handshakeBytes || !c.greeted && c.head > helloBytes {
		c.drop()
	}
	for c.of.headers > c.of.most*headerShare {
		longest := c
		for one := range c.of.held {
			if one.head > headerShare/2 && one.headSince.Before(longest.headSince) {
				longest = one
			}
		}
		longest.drop()
	}
}

// forgetHeader takes back what countHeader has counted. The caller must hold the lock of connections.
func (c *connection) forgetHeader() {
	c.of.headers -= min(c.head, c.of.header)
	c.head = 0
}

// countAhead counts bytes of an encrypted connection that were read for an authenticated request. If they are no part
// of its body, crypto/tls may keep them, such as a message of a handshake that does not end. The caller must hold the
// lock of connections.
func (c *connection) countAhead(bytes int) {
	if c.ahead += bytes; c.of.greet && c.ahead > handshakeBytes {
		c.drop()
	}
}

// delivers notes that a part of a request's body has arrived: crypto/tls then keeps no part of a message of a
// handshake, since it accepts nothing else until the message is whole.
func (c *connection) delivers() {
	if c != nil {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.ahead = 0
	}
}

// greets notes that the first message of a handshake has arrived.
func (c *connection) greets() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.greeted = true
}

// The server slows down a connection without an authenticated request once it has read more than unaskedBytes from it,
// and unaskedRate a second, or allUnaskedBytes and allUnaskedRate from all of them, since a client can dial again.
// Between two requests, when it holds no header, such a connection waits for as many paces as connections wait, but for
// at most mostPaced: the next request may be another client's, of the same proxy. If it has sent a body, it ends.
// Otherwise a hundred connections that send requests without end make other clients wait for seconds. A client whose
// requests are refused sends less than unaskedBytes of a body. Each request counts as requestBytes more, which is what
// refusing it costs.
const (
	requestBytes    = 1 << 10
	unaskedBytes    = 512 << 10
	unaskedRate     = 16 << 10
	allUnaskedBytes = 16 << 20
	allUnaskedRate  = 4 << 20
	pace            = 5 * time.Millisecond
	mostPaced       = 50
)

// unasked counts bytes that were read without an authenticated request, less a free number for each second.
type unasked struct {
	bytes   int
	counted time.Time
}

// add counts bytes, but at most twice the free ones, so that a flood slows no client down for long after it.
func (u *unasked) add(bytes, most, rate int, now time.Time) {
	free := min(now.Sub(u.counted)/(time.Second/time.Duration(rate)), time.Duration(2*most))
	u.bytes, u.counted = min(max(u.bytes-int(free), 0)+bytes, 2*most), now
}

// Read implements [net.Conn].
func (c *connection) Read(p []byte) (int, error) {
	c.waitForPace()
	n, err := c.Conn.Read(p)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
	case c.closed || c.answered != nil:
	case c.running:
		c.countAhead(n)
	default:
		now, cost := time.Now(), n
		if c.head == 0 {
			cost += requestBytes
		}
		c.countHeader(n, now)
		c.unasked.add(cost, unaskedBytes, unaskedRate, now)
		c.of.unasked.add(cost, allUnaskedBytes, allUnaskedRate, now)
	}
	return n, err
}

// isSlow reports whether the connection is one that is slowed down. The caller must hold the lock of connections.
func (c *connection) isSlow() bool {
	return !c.running && (c.unasked.bytes > unaskedBytes || c.of.unasked.bytes > allUnaskedBytes)
}

// endsAfter reports whether the connection ends after an answer: if the request's token stopped working meanwhile; or
// if no token of the request works, and the request had been sent before the one before it was answered, which no pace
// slows down, or has a body and is slowed down.
func (c *connection) endsAfter(status int, hasBody bool) bool {
	if c == nil {
		return false
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.running {
		return status == http.StatusUnauthorized
	}
	return c.early || hasBody && c.isSlow()
}

// waitForPace waits before more is read from a connection that is read slowly, until it has an authenticated request or
// is closed.
func (c *connection) waitForPace() {
	c.of.mu.Lock()
	if c.closed || c.head > 0 || c.unasked.bytes == 0 || !c.isSlow() {
		c.of.mu.Unlock()
		return
	}
	c.of.paced++
	wait, wake := time.NewTimer(time.Duration(min(c.of.paced, mostPaced))*pace), make(chan struct{})
	c.wake = wake
	c.of.mu.Unlock()
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-wake:
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.paced--
	c.wake = nil
}

// wakeUp ends waitForPace. The caller must hold the lock of connections.
func (c *connection) wakeUp() {
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}
