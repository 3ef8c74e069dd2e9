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
	maxAnswerHeaderSize = 64 << 10 // bytes, including informational responses
	// A server may send maxOverhead bytes, plus maxBytesOfByte for each byte of decoded body.
	// Chunked and compressed bodies can consist almost entirely of overhead.
	maxOverhead    = 1 << 20
	maxBytesOfByte = 16
	// lastWords is the maximum wait for a response after writing the request failed.
	lastWords = time.Second
	// writeWait is the maximum wait for the rest of the request to be written once its response is complete.
	writeWait = 50 * time.Millisecond
	// idleTimeout is shorter than the usual timeout of servers, so that a request seldom
	// arrives on a connection that is being closed.
	idleTimeout = 4 * time.Second
)

var (
	errHeaderSize = errors.New("the header of the response is too large")
	errOverhead   = errors.New("the server sends too many bytes that yield no body")
)

// connection carries requests to one server over HTTP/1.1, one at a time. It belongs to one session. It is read only by
// a request that waits for a response and, while it is idle, by one goroutine that closes it on the first byte. The
// connections of net/http are not used because they read all the time, and write unsolicited data to the process's log.
type connection struct {
	raw    net.Conn // for closing and deadlines; closing TLS may wait for the server
	stream net.Conn // for reading and writing
	reader *bufio.Reader
	key    string // equal for requests that may share it

	received int64 // bytes since the request
	readable int64 // limit on received
	tooMany  error // returned when the limit is exceeded

	expires time.Time // while idle
	quiet   chan bool // while idle: receives whether the connection is reusable
}

func newConnection(raw, stream net.Conn) *connection {
	c := &connection{raw: raw, stream: stream}
	c.reader = bufio.NewReader(boundedReader{c})
	return c
}

// boundedReader reads from a connection up to its limit.
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

// roundTrip sends a request and returns the response, whose body must be closed. It closes the
// connection when the request's context is done, and when the connection cannot be reused.
// Otherwise it passes the connection to keep once the response has been read.
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

// readHeader reads the header of the response and skips informational responses. It does not skip
// 101 Switching Protocols, which no request asks for.
func (c *connection) readHeader(request *http.Request) (*http.Response, error) {
	for {
		answer, err := http.ReadResponse(c.reader, request)
		if err != nil || answer.StatusCode < 100 || answer.StatusCode > 199 ||
			answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, err
		}
	}
}

// transfer is a request in flight, and then the body of its response.
type transfer struct {
	*connection
	keep    func(*connection)
	stop    func() bool // false if the context is done and the connection closed
	written chan error  // receives the error of writing the request
	closing bool        // the connection cannot be used after this response

	body  io.Reader
	ended bool // the connection was kept or closed
}

func (x *transfer) write(request *http.Request) {
	err := request.Write(x.stream)
	if err != nil {
		_ = x.raw.SetReadDeadline(time.Now().Add(lastWords))
	}
	x.written <- err
}

func (x *transfer) Read(p []byte) (int, error) {
	if x.ended { // another request may use the connection
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
	_ = x.abort() // an error in writing the request does not invalidate the response
	return nil
}

// abort closes the connection and returns the error of writing the request, if any.
func (x *transfer) abort() error {
	x.ended = true
	x.stop()
	x.raw.Close()
	return <-x.written
}

// finish keeps the connection, if it can be reused, after the response was read to its end.
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

// rest starts watching an idle connection.
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

// wake stops watching, and reports whether the connection is usable: open, and without unsolicited bytes.
func (c *connection) wake() bool {
	if c.raw.SetReadDeadline(time.Unix(1, 0)) != nil {
		<-c.quiet
		return false
	}
	return <-c.quiet && c.raw.SetReadDeadline(time.Time{}) == nil
}

// close closes an idle connection, and waits for the goroutine that watches it.
func (c *connection) close() {
	c.raw.Close()
	<-c.quiet
}
