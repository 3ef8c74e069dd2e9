package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson/server/internal/memory"
)

// answerWriter writes the answer to one request. Before the answer begins, it gives up the rest of the request's body.
// When the caller may no longer act, it lets the answer say so, in one piece and for a moment, and then ends the
// connection, however slowly the client reads.
type answerWriter struct {
	http.ResponseWriter
	connection *connection // nil outside of a server
	body       *timedBody  // nil without one
	begin      sync.Once

	mu    sync.Mutex
	begun bool
	ended error // why the caller may no longer act; nil if it may
	late  int   // bytes that were written since then
}

// lastWords is the maximum time of an answer that has begun once the caller may no longer act.
const lastWords = 300 * time.Millisecond

// noWords is the maximum time until the answer begins then. What a handler reads of a body may wait for a client that
// does not take what TLS answers to updates of its key.
const noWords = 2 * time.Second

// end ends the answer soon, since the caller may no longer act. ctx ends when the request has been answered whole; end
// does nothing then.
func (w *answerWriter) end(ctx context.Context, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.connection.takesNoMore(ctx) {
		return
	}
	w.ended = why
	if w.begun {
		w.connection.endIn(lastWords)
	} else {
		w.connection.endIn(noWords)
	}
}

// begins gives up the rest of the body, once.
func (w *answerWriter) begins(status int) {
	w.begin.Do(func() {
		ends := w.connection.endsAfter(status)
		if w.body != nil && !ends {
			w.body.ignoreRest()
		}
		if ends {
			w.Header().Set("Connection", "close")
			w.connection.readsNoMore()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.begun = true; w.ended != nil {
			w.Header().Set("Connection", "close")
			w.connection.endIn(lastWords)
		}
	})
}

// WriteHeader implements [http.ResponseWriter].
func (w *answerWriter) WriteHeader(status int) {
	w.begins(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *answerWriter) Write(p []byte) (int, error) {
	w.begins(http.StatusOK)
	return inPieces(p, func(p []byte) (int, error) {
		if err := w.mayWrite(len(p)); err != nil {
			return 0, err
		}
		return w.ResponseWriter.Write(p)
	})
}

// mayWrite returns an error if the caller may no longer act and was sent one more piece, which says so. A client must
// not get the rest of a long answer, however fast it reads.
func (w *answerWriter) mayWrite(bytes int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended == nil {
		return nil
	}
	if w.late += bytes; w.late > piece {
		return w.ended
	}
	return nil
}

// Flush implements [http.Flusher].
func (w *answerWriter) Flush() { _ = w.FlushError() }

// FlushError is what [http.ResponseController] calls.
func (w *answerWriter) FlushError() error {
	w.begins(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap returns the writer of net/http, for its deadlines.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// timedBody is the body of a request, which is bounded in size and must be sent within a time. The time ends with the
// body, so that it does not bound the rest of the request. Only the request's handler uses it.
type timedBody struct {
	io.ReadCloser
	deadlines  *http.ResponseController
	connection *connection // nil outside of a server
	// check returns why the caller may no longer act, or nil. It is set once the caller is known.
	check func() error
	// held counts the bytes that have arrived. It is set once the caller is known.
	held *memory.Request
	// expects is set while the client waits to be told that it may send the body.
	expects bool
	ended   bool
}

// newBody bounds the body of a request, whether a handler reads it or not: net/http waits for the rest before it
// answers. It returns nil if there is none.
func newBody(w http.ResponseWriter, r *http.Request, limits Limits) *timedBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	deadlines := http.NewResponseController(w)
	// A connection without deadlines has no slow client either.
	_ = deadlines.SetReadDeadline(time.Now().Add(limits.Body))
	return &timedBody{
		ReadCloser: http.MaxBytesReader(w, r.Body, limits.BodyBytes), deadlines: deadlines,
		connection: connectionFor(r), expects: strings.EqualFold(r.Header.Get("Expect"), "100-continue"),
	}
}

// Read implements [io.Reader]. At the end of the body, or if it did not arrive, it fails if the caller may no longer
// act: no handler acts on a body without reading it to its end.
func (b *timedBody) Read(p []byte) (int, error) {
	b.expects = false
	n, err := b.ReadCloser.Read(p)
	if b.held != nil {
		if full := b.held.Body(n); full != nil {
			return n, full
		}
	}
	switch {
	case err == io.EOF: // after another error, the rest must not be waited for
		b.ended = true
		_ = b.deadlines.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.ended = true
	}
	if err != nil && b.check != nil {
		if ended := b.check(); ended != nil {
			return n, ended
		}
	}
	return n, err
}

// Bounds on the rest of a body that is answered without it. Clients that are still sending it would not read the answer
// if the connection were closed at once.
const (
	restTime  = time.Second
	restBytes = 256 << 10
	restPiece = 1 << 10
)

// ignoreRest gives up the rest of the body.
func (b *timedBody) ignoreRest() {
	if b.ended {
		return
	}
	_ = b.deadlines.SetReadDeadline(time.Now().Add(restTime))
	if !b.expects { // reading would ask for it
		b.check, b.held = nil, nil
		defer b.connection.discard()()
		// net/http closes the connection if this is not all. A body in chunks of one byte would be read for 10 ms before it
		// is another connection's turn.
		for left, n := int64(restBytes), int64(1); n > 0 && left > 0; left -= n {
			runtime.Gosched()
			n, _ = io.CopyN(io.Discard, b, restPiece)
		}
	}
}
