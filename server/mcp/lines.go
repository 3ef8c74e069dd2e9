package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/jsontext"
)

// maxLine is the maximum length of a message on one line, in bytes: the arguments of a call in JSON, and room for the
// rest.
const maxLine = 4 << 20

// Bounds of what one connection holds: requests that are not answered, their bytes, and those among them that are not
// calls. These are answered at once, so that more of them only wait for the client to read.
const (
	maxOpen      = 1024
	maxOpenBytes = 64 << 20
	maxAtOnce    = 16
	maxListens   = 16 // subscriptions, which last
)

// ServeLines serves one client, whose messages it reads line by line, until in ends or ctx is done. Calls are made in
// session, and tools that it does not allow are not listed. Nothing but messages of the protocol is written to out.
// Both are closed.
//
// At the end, calls that still run are cancelled, and the client is told how they ended. A message that is not
// JSON, or is too long, ends the connection with an error. A client may have 1,024 requests without an answer; more are
// refused. While it does not read its answers, nothing more is read from it, so that the end of in comes after what was
// sent before. From then on it has a few seconds to read the rest.
func (s *Server) ServeLines(
	ctx context.Context, session *executor.Session, in io.ReadCloser, out io.WriteCloser,
) error {
	s.lines.Add(1)
	defer s.lines.Done()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	written := &lockedWriter{WriteCloser: out}
	watched := &watched{
		out: written, end: cancel, ended: make(chan struct{}), idle: make(chan struct{}, 1), read: make(chan struct{}),
		fences: &s.fences, closed: make(chan struct{}),
		open: map[jsonrpc.ID]openRequest{}, listen: map[jsonrpc.ID]bool{},
	}
	// The lines are bounded.
	watched.Transport = &sdk.IOTransport{Reader: &checkedLines{in: in, lines: bufio.NewReader(in), out: written},
		Writer: written, MaxLineLength: -1}
	serving := context.WithValue(ctx, lineKey{}, line{session, running})
	connection, err := s.sdk.Connect(serving, watched, nil)
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- connection.Wait() }()
	var fault error
	select {
	case <-ended:
		return watched.fault()
	case <-watched.ended:
		fault = watched.fault()
	case <-ctx.Done():
		watched.stop()
	case <-s.closed:
		watched.stop()
	}
	go func() { _ = connection.Close() }() // how it went, Wait says
	select {
	case <-ended:
		return fault
	case <-time.After(toTell):
		return cmp.Or(fault, errUnread)
	}
}

var errUnread = errors.New("mcp: the client does not read its answers")

// watched is a transport that knows how many requests have not been answered: the SDK answers none once a
// connection is about to be closed, or its input has ended.
type watched struct {
	sdk.Transport
	out   io.Writer
	end   func()        // cancels the calls that run
	ended chan struct{} // closed when reading has ended, and the client has been told, or has had long enough
	idle  chan struct{}

	fences   *fences
	notified bool          // the client has sent a notification, which no fence follows yet; only Read uses it
	fence    *fence        // that follows it; nil if none does. Only Read uses it.
	closed   chan struct{} // closed when the connection is
	closing  sync.Once

	mu     sync.Mutex
	open   map[jsonrpc.ID]openRequest // requests without an answer
	listen map[jsonrpc.ID]bool        // subscriptions that last
	bytes  int                        // of them, as held says
	atOnce int                        // how many of them are not calls
	read   chan struct{}              // closed when the client has read an answer
	begun  bool                       // the client has sent initialize
	err    error                      // with which reading ended
}

// openRequest is a request without an answer.
type openRequest struct {
	bytes  int
	atOnce bool
}

// readable waits until the client has read enough of its answers.
func (w *watched) readable() {
	for {
		w.mu.Lock()
		enough, read := w.atOnce < maxAtOnce, w.read
		w.mu.Unlock()
		if enough {
			return
		}
		<-read
	}
}

// next returns the fence that follows a notification, or nil once it has been reached. So a client has one notification
// at a time that is not handled: while it does not read its answers, more of them are not read from it.
func (w *watched) next() *fence {
	if w.notified {
		w.notified, w.fence = false, w.fences.put()
		return w.fence
	}
	if w.fence != nil {
		select {
		case <-w.fence.reached:
		case <-w.closed:
		}
		w.fence.remove()
		w.fence = nil
	}
	return nil
}

// fault returns why the client's messages could not be read, or nil if it has gone.
func (w *watched) fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, gone := range []error{io.EOF, io.ErrClosedPipe, os.ErrClosed} {
		if w.err == nil || errors.Is(w.err, gone) {
			return nil
		}
	}
	return fmt.Errorf("mcp: the client's messages cannot be read: %w", w.err)
}

// Connect implements [sdk.Transport].
func (w *watched) Connect(ctx context.Context) (sdk.Connection, error) {
	connection, err := w.Transport.Connect(ctx)
	return &watchedConnection{connection, w}, err
}

type watchedConnection struct {
	sdk.Connection
	*watched
}

// Read implements [sdk.Connection].
func (w *watchedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if fence := w.next(); fence != nil {
			return fence.message(), nil
		}
		w.readable()
		message, err := w.Connection.Read(ctx)
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			w.stop()
			close(w.ended) // the SDK reads no more
			return nil, err
		}
		request, ok := message.(*jsonrpc.Request)
		if !ok || !request.IsCall() {
			w.notified = ok
			return message, nil
		}
		refusal, known := w.admit(request)
		switch {
		case refusal == nil:
			return message, nil
		case known:
			err = w.Connection.Write(ctx, &jsonrpc.Response{ID: request.ID, Error: refusal})
		default:
			err = (&rejection{err: refusal}).writeLine(w.out)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Close implements [sdk.Connection].
func (w *watchedConnection) Close() error {
	w.closing.Do(func() { close(w.closed) })
	return w.Connection.Close()
}

// admit counts a request that is to be answered, or returns why it is refused, and whether its id can be answered.
func (w *watched) admit(request *jsonrpc.Request) (refusal *jsonrpc.Error, known bool) {
	size := held(string(request.Params))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = w.begun || request.Method == "initialize"
	switch _, used := w.open[request.ID]; {
	case used || w.listen[request.ID]:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "the id is that of a request that has not been answered"}, false
	case !w.begun && !methods[request.Method].early && !bytes.Contains(request.Params, []byte(sdk.MetaKeyProtocolVersion)):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: noSession}, true
	case len(w.open) >= maxOpen || w.bytes+size > maxOpenBytes:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("%d requests have not been answered; wait for answers before sending more", len(w.open))}, true
	}
	// A subscription lasts until its client cancels it, so that no client waits for the answer.
	if request.Method == listenMethod {
		if len(w.listen) >= maxListens {
			tooMany := fmt.Sprintf("there are %d subscriptions; cancel some of them", len(w.listen))
			return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: tooMany}, true
		}
		w.listen[request.ID] = true
		return nil, true
	}
	one := openRequest{size, request.Method != callMethod}
	w.open[request.ID] = one
	w.count(one, 1)
	return nil, true
}

// count adds a request n times to the open ones. The caller must hold w.mu.
func (w *watched) count(one openRequest, n int) {
	w.bytes += n * one.bytes
	if one.atOnce {
		w.atOnce += n
	}
}

// Write implements [sdk.Connection].
func (w *watchedConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	response, ok := message.(*jsonrpc.Response)
	if !ok {
		return w.Connection.Write(ctx, message)
	}
	if response.Error != nil {
		response.Error, _ = inWords(response.Error)
	}
	w.mu.Lock()
	delete(w.listen, response.ID)
	w.mu.Unlock()
	defer w.removeAnswered(response.ID)
	return w.Connection.Write(ctx, message)
}

func (w *watched) removeAnswered(id jsonrpc.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.read)
	w.read = make(chan struct{})
	w.count(w.open[id], -1)
	delete(w.open, id)
	if len(w.open) == 0 {
		select {
		case w.idle <- struct{}{}:
		default: // stop has not noticed the last time
		}
	}
}

// stop cancels the calls that run, and waits until all requests have been answered, or the client has had long enough
// to read the answers.
func (w *watched) stop() {
	w.end()
	late := time.NewTimer(toTell)
	defer late.Stop()
	for {
		w.mu.Lock()
		open := len(w.open)
		w.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-w.idle:
		case <-late.C:
			return
		}
	}
}

// checkedLines are the client's messages without those that [check] rejects, which it answers. The messages of a batch
// are passed on one by one, and so are their answers: the SDK would hold those of a batch until the last is there,
// which can take as long as a subscription lasts.
type checkedLines struct {
	in    io.Closer
	lines *bufio.Reader
	out   io.Writer
	rest  []byte // of a message, or of the messages of a batch
}

func (c *checkedLines) Close() error { return c.in.Close() }

// Read implements [io.Reader].
func (c *checkedLines) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		message, err := c.next()
		if err != nil {
			return 0, err
		}
		c.rest = message
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next returns the next message that is passed on, or the messages of a batch, each with a line break, or nothing for
// what is not passed on.
func (c *checkedLines) next() ([]byte, error) {
	var message []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		if len(message)+len(part) > maxLine {
			return nil, fmt.Errorf("a message is longer than %d bytes", maxLine)
		}
		message = append(message, part...)
		if err == nil || err == io.EOF && len(bytes.TrimSpace(message)) > 0 {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	text := bytes.TrimSpace(message)
	if len(text) == 0 {
		return nil, nil
	}
	free := func(int) error { return nil }            // what the messages take is counted in their order
	rejected := check(string(text), true, true, free) // and so is whether a session has begun
	switch {
	case rejected == nil:
		return oneByOne(string(text)), nil
	case rejected.err.Code == jsonrpc.CodeParseError:
		return nil, rejected.err
	case rejected.silent:
		return nil, nil
	}
	return nil, rejected.writeLine(c.out)
}

// oneByOne returns a message, or the messages of a batch, each with a line break.
func oneByOne(text string) []byte {
	lines := make([]byte, 0, len(text)+1)
	if doc, rejected := parse(text); rejected == nil && doc.Root().Kind() == jsontext.Array {
		for _, message := range doc.Root().Elements() {
			lines = append(append(lines, message.Text()...), '\n')
		}
		return lines
	}
	return append(append(lines, text...), '\n')
}

func (r *rejection) writeLine(out io.Writer) error {
	answer, err := r.message()
	if err != nil {
		return err
	}
	_, err = out.Write(append(answer, '\n'))
	return err
}

// lockedWriter writes one message at a time.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
