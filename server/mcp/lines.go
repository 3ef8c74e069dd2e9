package mcp

import (
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
)

// maxLine is how many bytes a message on one line may have: the arguments of a call in JSON, and room for the rest.
const maxLine = 4 << 20

// toTell is how long a client that has stopped reading may delay the end of its connection.
const toTell = 2 * time.Second

// ServeLines serves one client, whose messages it reads line by line, until in ends or ctx is done. Calls are
// made in session. If allowed is not nil, it returns the names of the tools that may be listed and called now; each list
// and call asks it, and the session allows them from then on. Nothing but messages of the protocol is written to out. Both are closed.
//
// At the end, calls that still run are cancelled, and the client is told how they ended. A message that is not
// JSON, or is too long, ends the connection with an error.
func (s *Server) ServeLines(ctx context.Context, session *executor.Session, allowed func() ([]string, error), in io.ReadCloser, out io.WriteCloser) error {
	s.lines.Add(1)
	defer s.lines.Done()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	serving := context.WithValue(ctx, lineKey{}, line{session, allowed, running})
	watched := &watched{Transport: &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxLine}, end: cancel, idle: make(chan struct{}, 1), open: map[jsonrpc.ID]bool{}}
	connection, err := s.sdk.Connect(serving, watched, nil)
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- connection.Wait() }()
	select {
	case <-ended:
		return watched.fault()
	case <-ctx.Done():
	case <-s.closed:
	}
	cancel()
	watched.settle()
	go func() { _ = connection.Close() }() // how it went, Wait says
	select {
	case <-ended:
	case <-time.After(toTell):
		return errors.New("mcp: the client does not read what it is sent")
	}
	return nil
}

// watched is a transport that knows how many requests have not been answered: the SDK answers none once a
// connection is about to be closed, or its input has ended.
type watched struct {
	sdk.Transport
	end  func() // cancels the calls that run
	idle chan struct{}

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // requests without an answer
	err  error               // with which reading ended
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
	message, err := w.Connection.Read(ctx)
	if err != nil {
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
		w.end()
		w.settle()
		return nil, err
	}
	// A subscription lasts until the end: there is no answer to wait for.
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() && request.Method != "subscriptions/listen" {
		w.mu.Lock()
		w.open[request.ID] = true
		w.mu.Unlock()
	}
	return message, nil
}

// Write implements [sdk.Connection].
func (w *watchedConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	if response, ok := message.(*jsonrpc.Response); ok {
		defer w.answered(response.ID)
	}
	return w.Connection.Write(ctx, message)
}

func (w *watched) answered(id jsonrpc.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, id)
	if len(w.open) == 0 {
		select {
		case w.idle <- struct{}{}:
		default: // nobody has noticed the last time
		}
	}
}

// settle waits until all requests have been answered, or the client has had long enough to read the answers.
func (w *watched) settle() {
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
