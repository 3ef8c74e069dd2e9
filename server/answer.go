package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson/server/internal/memory"
)

// piece is how many bytes of an answer a client has to take within [Limits.Stall].
const piece = 16 << 10

// inPieces writes with a time limit for each piece, so that a client that reads slowly and steadily gets all of a long
// answer.
func inPieces(p []byte, write func([]byte) (int, error)) (n int, err error) {
	for {
		written, err := write(p[n:min(n+piece, len(p))])
		n += written
		if err != nil || n >= len(p) {
			return n, err
		}
	}
}

// stallConn gives the client a limited time to take what is written to it. A write that fails closes it.
type stallConn struct {
	net.Conn
	stall func() time.Duration
}

// Write implements [net.Conn].
func (c stallConn) Write(p []byte) (int, error) {
	n, err := inPieces(p, func(p []byte) (int, error) {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.stall())); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	})
	if err != nil {
		_ = c.Conn.Close() // crypto/tls would write that it closes the connection, and wait as long again
	}
	return n, err
}

// answerWriter writes the answer to one request. Before the answer begins, it gives up the rest of the request's body.
// When the caller may no longer act, it lets the answer say so, in one piece and for a moment, and then ends it,
// however slowly the client takes it: over HTTP/2 the stream, and over HTTP/1.1 the connection, which takes no other
// request.
//
// Over HTTP/2, it also gives the client a limited time to take what is written to it. [stallConn] cannot: while the
// client grants the stream no window, nothing is written to the connection at all.
type answerWriter struct {
	http.ResponseWriter
	stream     *http.ResponseController
	connection *connection   // nil outside of a server
	stall      time.Duration // zero over HTTP/1.1, where a stream is a connection
	body       *timedBody    // nil without one
	begin      sync.Once
	uncount    func() // has the request count as answered; nil if it is not authenticated
	// refusing is the connection of a request over HTTP/2 that is not authenticated.
	refusing *connection
	counted  bool // there

	mu      sync.Mutex
	begun   bool
	handled bool        // over HTTP/2, the handler has ended, and with it the stream's deadlines
	writing bool        // something is on its way to the client
	ended   error       // why the caller may no longer act; nil if it may
	late    int         // bytes that were written since then
	ending  *time.Timer // ends the answer; nil if it may last
}

// When the caller of a request may no longer act, its answer has lastWords to tell the client. Over HTTP/2, its stream
// is reset then. If, for resetTime more, a write waits for a client that reads nothing, or reads slowly, the request
// counts as answered. The connection ends when the client has read nothing of it for unreadTime, unless it has other
// authenticated requests. Over HTTP/1.1, the connection ends after the first two times.
const (
	lastWords  = 100 * time.Millisecond
	resetTime  = 200 * time.Millisecond
	unreadTime = 2 * time.Second
)

// newAnswer returns the writer of the answer to a request, and what must be called when the handler has ended.
func (s *Server) newAnswer(w http.ResponseWriter, r *http.Request, body *timedBody) (answer *answerWriter, handled func()) {
	answer = &answerWriter{
		ResponseWriter: w, stream: http.NewResponseController(w), connection: connectionFor(r), body: body,
	}
	if r.ProtoMajor < 2 {
		return answer, answer.begins
	}
	answer.stall = s.options.Limits.Stall
	answer.free() // of the time limit for the requests that net/http answers itself
	answer.refusing = answer.connection
	return answer, func() {
		defer answer.leave()
		answer.begins()
		if answer.counted {
			_ = answer.FlushError() // the answer counts until it is on its way
			answer.refusing.refused()
		}
		answer.bound() // net/http writes the rest of the answer after the handler has ended
	}
}

// end ends the answer soon, since the caller may no longer act. An answer that has not begun gets the same time from
// its beginning. ctx ends when the request has been answered whole; end does nothing then.
func (w *answerWriter) end(ctx context.Context, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stall == 0 && !w.connection.takesNoMore(ctx) {
		return
	}
	if w.ended = why; w.begun {
		w.endSoon()
	}
}

// endSoon limits the time for the rest of the answer. The caller must hold w.mu.
func (w *answerWriter) endSoon() {
	if w.handled || w.ending != nil {
		return
	}
	if w.stall > 0 {
		_ = w.stream.SetWriteDeadline(time.Now().Add(lastWords)) // HTTP/2 has deadlines
	}
	w.ending = time.AfterFunc(lastWords+resetTime, w.endStalled)
}

// endStalled ends what endSoon has not ended by then.
func (w *answerWriter) endStalled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stall == 0:
		w.connection.end()
	case w.writing && !w.handled:
		w.uncount()
		if !w.connection.endUnread() {
			w.ending.Reset(unreadTime)
		}
	}
}

// leave notes that the handler has ended, over HTTP/2.
func (w *answerWriter) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handled = true
	if w.ending != nil {
		w.ending.Stop()
	}
}

// begins gives up the rest of the body, once.
func (w *answerWriter) begins() {
	w.begin.Do(func() {
		if w.refusing != nil {
			if w.counted = w.refusing.refuses(); !w.counted {
				panic(http.ErrAbortHandler) // which resets the stream
			}
		}
		if w.body != nil {
			w.body.ignoreRest()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.begun = true; w.ended != nil {
			if w.stall == 0 {
				w.Header().Set("Connection", "close")
			}
			w.endSoon()
		}
	})
}

// bound limits the time in which the client must take what is written next.
func (w *answerWriter) bound() { w.writes(true, time.Now().Add(w.stall)) }

// free lets the stream be silent for any time. It takes no deadline away: net/http would make a new timer for the next
// one, which keeps the memory of a stream that has ended by then.
func (w *answerWriter) free() { w.writes(false, time.Now().Add(forever)) }

// forever is longer than anything that the server does.
const forever = 100 * 365 * 24 * time.Hour

func (w *answerWriter) writes(writing bool, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = writing
	if w.stall > 0 && w.ending == nil {
		_ = w.stream.SetWriteDeadline(until) // HTTP/2 has deadlines
	}
}

// WriteHeader implements [http.ResponseWriter].
func (w *answerWriter) WriteHeader(status int) {
	w.begins()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *answerWriter) Write(p []byte) (int, error) {
	w.begins()
	defer w.free()
	return inPieces(p, func(p []byte) (int, error) {
		if err := w.mayWrite(len(p)); err != nil {
			return 0, err
		}
		w.bound()
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
	w.begins()
	w.bound()
	defer w.free()
	return w.stream.Flush()
}

// Unwrap returns the writer of net/http, for its deadlines.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// timedBody is the body of a request, which is bounded in size and must be sent within a time. The time ends with the
// body, so that it does not bound the rest of the request. Only the request's handler uses it.
type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
	// check returns why the caller may no longer act, or nil. It is set once the caller is known.
	check func() error
	// held counts the bytes that have arrived. It is set once the caller is known.
	held *memory.Request
	// multiplexed is set over HTTP/2, where no other request waits for the body.
	multiplexed bool
	// unasked is set while the client waits to be told that it may send the body.
	unasked bool
	ended   bool
}

// newBody bounds the body of a request, whether a handler reads it or not: net/http waits for the rest before it
// answers. It returns nil if there is none.
func (s *Server) newBody(w http.ResponseWriter, r *http.Request) *timedBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(s.options.Limits.Body)) // a connection without deadlines has no slow client either
	return &timedBody{
		ReadCloser: http.MaxBytesReader(w, r.Body, s.options.Limits.BodyBytes), connection: connection,
		multiplexed: r.ProtoMajor >= 2, unasked: strings.EqualFold(r.Header.Get("Expect"), "100-continue"),
	}
}

// Read implements [io.Reader]. At the end of the body, or if it did not arrive, it fails if the caller may no longer
// act: no handler acts on a body without reading it to its end.
func (b *timedBody) Read(p []byte) (int, error) {
	b.unasked = false
	n, err := b.ReadCloser.Read(p)
	if b.held != nil {
		if full := b.held.Body(n); full != nil {
			return n, full
		}
	}
	switch {
	case err == io.EOF: // after another error, the rest must not be waited for
		b.ended = true
		_ = b.connection.SetReadDeadline(time.Time{})
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
)

// ignoreRest gives up the rest of the body.
func (b *timedBody) ignoreRest() {
	switch {
	case b.ended:
		return
	case b.multiplexed:
		_ = b.Close()
		return
	}
	_ = b.connection.SetReadDeadline(time.Now().Add(restTime))
	if !b.unasked { // reading would ask for it
		b.check, b.held = nil, nil
		_, _ = io.CopyN(io.Discard, b, restBytes) // net/http closes the connection if this is not all
	}
}
