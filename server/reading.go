package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"runtime"
	"syscall"
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

// Read implements [net.Conn].
func (c *connection) Read(p []byte) (int, error) {
	if c.silent.Load() {
		return 0, io.EOF
	}
	c.leavePlace()
	n, err := c.readPlain(p)
	isBeside := len(p) == 1 // net/http looks for a disconnection, perhaps before the handler has begun
	if n == 0 && errors.Is(err, io.EOF) && isBeside {
		return 0, c.holdEnd()
	}
	if errors.Is(err, errShortRecords) {
		c.readsNoMore()
		return 0, io.EOF
	}
	if n > 0 {
		c.socket.delivered()
	}
	if n > 0 && !isBeside { // the handler of the request before may wait
		c.takePlace()
	}
	return n, err
}

// takePlace waits for one of a few places, in the order in which connections have read. A connection whose last request
// was not authenticated needs one while net/http parses its next request. It leaves the place before it may wait, so no
// client can keep one. There are half as many places as processors. If all processors were busy with such requests, the
// Go runtime would poll the network only every 10 ms, and a call waits for each answer of its database.
func (c *connection) takePlace() {
	if c.isKnown.Load() || c.socket.handled.Load() && !c.discards.Load() {
		return
	}
	c.of.places <- struct{}{}
	c.placed.Store(true)
	runtime.Gosched() // the next one runs at once, before goroutines that have waited longer for a processor
}

// discard has the connection take places also while the rest of a refused body is read, until end is called.
func (c *connection) discard() (end func()) {
	if c == nil {
		return func() {}
	}
	c.discards.Store(true)
	return func() {
		c.discards.Store(false)
		c.leavePlace()
	}
}

// leavePlace is called before a connection may wait. It reports whether the connection had a place.
func (c *connection) leavePlace() bool {
	had := c.placed.CompareAndSwap(true, false)
	if had {
		<-c.of.places
	}
	return had
}

// sendsNoMore is how long a client that sends no more is taken for one that waits for its answer. net/http would end
// its request at once. Most clients that send no more have gone.
const sendsNoMore = time.Second / 4

// holdEnd returns io.EOF for a client that sends no more, once it counts as gone. If the request is answered before,
// net/http stops waiting, and holdEnd fails.
func (c *connection) holdEnd() error {
	socket, ok := c.socket.Conn.(syscall.Conn)
	if !ok {
		return io.EOF
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return io.EOF
	}
	over := time.AfterFunc(sendsNoMore, func() { _ = c.socket.Conn.SetReadDeadline(time.Unix(1, 0)) })
	err = raw.Read(isReset) // it is asked again when the system notices something
	if over.Stop() && err != nil {
		return err
	}
	return io.EOF
}

// endsAfter reports whether the connection ends after an answer, since the request's token stopped working meanwhile.
func (c *connection) endsAfter(status int) bool {
	if c == nil {
		return false
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.running && status == http.StatusUnauthorized
}

// readsNoMore stops reading from a connection that ends after the answer. Otherwise net/http reads the rest of a body,
// which takes a hundred times as long in chunks of one byte as in one piece.
func (c *connection) readsNoMore() { c.silent.Store(true) }
