package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"time"
)

// header counts the lines of a request's header while it is read. For many short fields, net/http takes up to thirty
// times their length, before any handler can refuse them.
type header struct {
	lines    int
	hasBegun bool // the current line is not blank
	ended    bool // a blank line has followed the others
}

// add counts the lines in a part of the bytes that are read.
func (h *header) add(part []byte) {
	for _, c := range part {
		switch {
		case h.ended:
			return
		case c != '\n':
			h.hasBegun = h.hasBegun || c != '\r'
		case h.hasBegun:
			h.lines, h.hasBegun = h.lines+1, false
		default:
			h.ended = h.lines > 0 // after a POST, net/http skips blank lines before the first line
		}
	}
}

// isLong reports whether there are more lines than a request and its fields may have.
func (h *header) isLong() bool { return h.lines > 1+maxFields }

// readPlain reads what the client has sent for net/http, decrypted. It passes on no header of too many fields, and
// refuses the request itself: it reads until the header ends, so that the client reads the answer.
func (c *connection) readPlain(p []byte) (n int, err error) {
	if err := c.establish(); err != nil {
		return 0, err
	}
	n, err = c.Conn.Read(p)
	if c.socket.handled.Load() { // these are bytes of a body
		return n, err
	}
	for read := n; ; read += n {
		c.header.add(p[:n])
		if !c.header.isLong() {
			return n, err
		}
		if err != nil || c.header.ended || read > c.of.header {
			return 0, c.refuse(http.StatusRequestHeaderFieldsTooLarge, manyFields)
		}
		n, err = c.Conn.Read(p)
	}
}

// establish performs the handshake of an encrypted connection, once. A client that has sent something else is answered
// in plain text.
func (c *connection) establish() error {
	if c.tls == nil || c.socket.established.Load() {
		return nil
	}
	err := c.tls.Handshake()
	if other, ok := errors.AsType[tls.RecordHeaderError](err); ok && other.Conn != nil {
		c.of.mu.Lock()
		c.Conn = c.socket
		c.of.mu.Unlock()
		return c.refuse(http.StatusBadRequest, "this server speaks HTTPS; write https:// instead of http://")
	}
	if err == nil {
		c.socket.delivered()
		c.socket.established.Store(true)
	}
	return err
}

// refuse answers a request before net/http has read it. The connection then looks to net/http as if the client had
// closed it.
func (c *connection) refuse(status int, detail string) error {
	_, _ = c.Conn.Write(unparsedProblem(status, detail)) // the client may have gone
	c.readsNoMore()
	return io.EOF
}

// The server slows down connections without an authenticated request once it has read more than unaskedBytes from all
// of them, and unaskedRate a second. With fewAsking such connections, others do not notice even if these always have a
// request. More of them wait before they are answered, each for as long as refusing a request of each of the others
// takes, and as many times longer as the request is longer than longRequest. So whoever made the request waits: if the
// server waited before it reads the next one, that could be another client's, of the same proxy. If the request has a
// body, the connection ends. Otherwise a hundred connections that send requests without end make other clients wait for
// seconds. Each request counts as requestBytes more, which is what refusing it costs.
const (
	requestBytes = 1 << 10
	unaskedBytes = 16 << 20
	unaskedRate  = 4 << 20
	fewAsking    = 64
	pace         = 300 * time.Microsecond
	mostPaced    = 800
	longRequest  = 4 << 10
	mostLonger   = 4
)

// asking counts the connections that had a request without a token that works, in each second.
type asking struct {
	second      int64 // since 1970
	now, before int   // in this second, and in the one before it
}

// add counts a connection, which was counted in some second before, and returns the second.
func (a *asking) add(counted int64, now time.Time) int64 {
	second := now.Unix()
	if second != a.second {
		if second != a.second+1 {
			a.now = 0
		}
		a.second, a.now, a.before = second, 0, a.now
	}
	if counted != second {
		a.now++
	}
	return second
}

// unasked counts bytes that were read without an authenticated request, less a free number for each second.
type unasked struct {
	bytes   int
	counted time.Time
}

// add counts bytes, but at most twice the free ones, so that a flood slows no client down for long after it. It returns
// how many it has counted.
func (u *unasked) add(bytes int, now time.Time) (counted int) {
	free := min(now.Sub(u.counted)/(time.Second/unaskedRate), 2*unaskedBytes)
	left := max(u.bytes-int(free), 0)
	counted = min(bytes, max(2*unaskedBytes-left, 0))
	u.bytes, u.counted = left+counted, now
	return counted
}

// Read implements [net.Conn].
func (c *connection) Read(p []byte) (int, error) {
	if c.silent.Load() {
		return 0, io.EOF
	}
	n, err := c.readPlain(p)
	if errors.Is(err, errShortRecords) {
		c.readsNoMore()
		return 0, io.EOF
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if n > 0 {
		c.socket.delivered()
	}
	if n > 0 && !c.closed && !c.running && c.answered == nil {
		now, cost := time.Now(), n+recordCost*int(c.socket.begun.Swap(0))
		if c.cost == 0 {
			cost += requestBytes
			c.first, c.asked = c.asked == 0, c.of.asking.add(c.asked, now)
		}
		c.cost += cost
		c.added += c.of.unasked.add(cost, now)
	}
	return n, err
}

// isSlow reports whether the connection is one that is slowed down. The caller must hold the lock of connections.
func (c *connection) isSlow() bool { return !c.running && c.of.unasked.bytes > unaskedBytes }

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

// readsNoMore stops reading from a connection that ends after the answer. Otherwise net/http reads the rest of a body,
// which takes a hundred times as long in chunks of one byte as in one piece.
func (c *connection) readsNoMore() { c.silent.Store(true) }

// waitForPace waits before the answer to a request is written, if the connection is slow, until the request turns out
// to be authenticated or the connection is closed. A request waits once.
func (c *connection) waitForPace() {
	c.of.mu.Lock()
	others := min(max(c.of.asking.now, c.of.asking.before)-fewAsking, mostPaced)
	if c.paced || c.closed || c.answered != nil || c.first || others <= 0 || !c.isSlow() {
		c.of.mu.Unlock()
		return
	}
	c.paced = true
	paces := others * min(1+c.cost/longRequest, mostLonger)
	wait, wake := time.NewTimer(time.Duration(paces)*pace), make(chan struct{})
	c.wake = wake
	c.of.mu.Unlock()
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-wake:
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.wake = nil
}

// wakeUp ends waitForPace. The caller must hold the lock of connections.
func (c *connection) wakeUp() {
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}
