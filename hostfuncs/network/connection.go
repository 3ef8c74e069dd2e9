package network

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	maxAnswerHeaderSize = 64 << 10 // bytes, with the informational answers before it
	// A server may send so many bytes that yield no body, and so many for each byte that they
	// do yield: chunked and compressed bodies can be made of almost nothing else.
	maxOverhead    = 1 << 20
	maxBytesOfByte = 16
	// lastWords is how long an answer is waited for when a server takes no more of the request.
	lastWords = time.Second
	// writeWait is how long a request may still be on its way when its answer is complete.
	writeWait = 50 * time.Millisecond
	// idleTimeout is less than what servers commonly have, so that a request seldom meets a
	// connection that is being closed.
	idleTimeout = 4 * time.Second
)

var (
	errHeaderSize = errors.New("the header of the answer is too large")
	errOverhead   = errors.New("the server sends too much that yields no body")
)

// connection carries requests to one server, one at a time, over HTTP/1.1. It belongs to one
// session. Whatever a server sends, nobody reads it but a request that waits for it, and, for
// a connection that is idle, one goroutine that closes it on the first byte. net/http's own
// connections read all the time, and write to the process's log what nobody asked for.
type connection struct {
	raw    net.Conn // what is closed and has deadlines; closing TLS may wait for the server
	stream net.Conn // what is read and written
	reader *bufio.Reader
	key    string // equal for requests that may share it

	received int64 // bytes since the request
	readable int64 // how many of them there may be
	tooMany  error // what it is when there are more

	expires time.Time // while idle
	quiet   chan bool // while idle: gets whether it can be used again
}

func newConnection(raw, stream net.Conn) *connection {
	c := &connection{raw: raw, stream: stream}
	c.reader = bufio.NewReader(boundedReader{c})
	return c
}

// boundedReader reads from a connection what it may still receive.
type boundedReader struct{ *connection }

func (b boundedReader) Read(p []byte) (int, error) {
	left := b.readable - b.received
	if left <= 0 {
		return 0, b.tooMany
	}
	n, err := b.stream.Read(p[:min(int64(len(p)), left)])
	b.received += int64(n)
	return n, err
}

// roundTrip sends a request and returns the answer, whose body must be closed. The connection
// is closed when the request's context ends, and whenever it cannot carry another request;
// else keep gets it once the answer has been read.
func (c *connection) roundTrip(request *http.Request, keep func(*connection)) (*http.Response, error) {
	c.received, c.readable, c.tooMany = 0, maxAnswerHeaderSize, errHeaderSize
	x := &transfer{connection: c, keep: keep, written: make(chan error, 1)}
	x.stop = context.AfterFunc(request.Context(), func() { c.raw.Close() })
	go x.write(request)
	answer, err := c.readHeader(request)
	if err != nil {
		return nil, errors.Join(err, x.abort())
	}
	c.readable, c.tooMany = c.received+maxOverhead, errOverhead
	x.closing = answer.Close || answer.StatusCode < 200
	if answer.Body == http.NoBody && !x.closing {
		x.finish()
		return answer, nil
	}
	x.body = decoded(request, answer)
	answer.Body = x
	return answer, nil
}

// readHeader skips informational answers. Switching protocols was not asked for: it is none.
func (c *connection) readHeader(request *http.Request) (*http.Response, error) {
	for {
		answer, err := http.ReadResponse(c.reader, request)
		if err != nil || answer.StatusCode < 100 || answer.StatusCode > 199 || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, err
		}
	}
}

// transfer is a request under way, and then the body of its answer.
type transfer struct {
	*connection
	keep    func(*connection)
	stop    func() bool // false if the context's end has closed the connection
	written chan error  // gets what came of writing the request
	closing bool        // the server closes the connection after this answer

	body  io.Reader
	ended bool // nothing remains to be done
}

func (x *transfer) write(request *http.Request) {
	err := request.Write(x.stream)
	if err != nil {
		_ = x.raw.SetReadDeadline(time.Now().Add(lastWords))
	}
	x.written <- err
}

// Read reads the body, decoded.
func (x *transfer) Read(p []byte) (int, error) {
	if x.ended { // the connection may have another request
		return 0, io.EOF
	}
	n, err := x.body.Read(p)
	x.readable += maxBytesOfByte * int64(n)
	if errors.Is(err, io.EOF) {
		x.finish()
	}
	return n, err
}

// Close closes the connection if the body was not read to its end.
func (x *transfer) Close() error {
	if x.ended {
		return nil
	}
	_ = x.abort() // that the request could not be written whole says nothing about the answer
	return nil
}

// abort closes the connection and returns why the request could not be written, if so.
func (x *transfer) abort() error {
	x.ended = true
	x.stop()
	x.raw.Close()
	return <-x.written
}

// finish gives the connection back after an answer that was read to its end.
func (x *transfer) finish() {
	if x.closing || x.reader.Buffered() > 0 {
		_ = x.abort()
		return
	}
	x.ended = true
	wait := time.AfterFunc(writeWait, func() { x.raw.Close() })
	err := <-x.written
	if inTime := wait.Stop(); !x.stop() || !inTime || err != nil {
		x.raw.Close()
		return
	}
	x.keep(x.connection)
}

// rest begins to watch a connection that is idle.
func (c *connection) rest() {
	c.received, c.readable = 0, 1
	c.expires = time.Now().Add(idleTimeout)
	c.quiet = make(chan bool, 1)
	if c.raw.SetReadDeadline(c.expires) != nil {
		c.raw.Close()
	}
	go func() {
		_, err := c.reader.Peek(1)
		quiet := errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(c.expires)
		if !quiet {
			c.raw.Close()
		}
		c.quiet <- quiet
	}()
}

// wake ends that, and reports whether the server has neither closed the connection nor sent
// anything.
func (c *connection) wake() bool {
	if c.raw.SetReadDeadline(time.Unix(1, 0)) != nil {
		<-c.quiet
		return false
	}
	return <-c.quiet && c.raw.SetReadDeadline(time.Time{}) == nil
}

// close closes a connection that is idle, and waits until nobody watches it.
func (c *connection) close() {
	c.raw.Close()
	<-c.quiet
}
