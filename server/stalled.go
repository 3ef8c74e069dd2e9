package server

import (
	"net/http"
	"time"
)

// stallWriter gives the client of one HTTP/2 stream a limited time to take what is written to it. [stallConn] cannot: while
// the client grants the stream no window, nothing is written to the connection at all. Without it, anybody could hold a
// connection for ever with a request and a window of zero.
type stallWriter struct {
	http.ResponseWriter
	stream *http.ResponseController
	stall  time.Duration
}

// boundAnswer bounds the time in which the client has to take each part of an answer, and returns what must be called when the
// handler has ended.
func (s *Server) boundAnswer(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, func()) {
	if r.ProtoMajor < 2 {
		return w, func() {} // a stream is a connection
	}
	bounded := &stallWriter{w, http.NewResponseController(w), s.options.Limits.Stall}
	return bounded, bounded.bound // net/http writes the rest of the answer after the handler has ended
}

func (w *stallWriter) bound() { _ = w.stream.SetWriteDeadline(time.Now().Add(w.stall)) } // HTTP/2 has deadlines

// free lets the stream say nothing for as long as it likes.
func (w *stallWriter) free() { _ = w.stream.SetWriteDeadline(time.Time{}) }

// Write implements [http.ResponseWriter].
func (w *stallWriter) Write(p []byte) (int, error) {
	w.bound()
	defer w.free()
	return w.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (w *stallWriter) Flush() { _ = w.FlushError() }

// FlushError is what [http.ResponseController] calls.
func (w *stallWriter) FlushError() error {
	w.bound()
	defer w.free()
	return w.stream.Flush()
}

// Unwrap returns the writer of net/http, for its deadlines.
func (w *stallWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
