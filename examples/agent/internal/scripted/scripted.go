// Package scripted is an endpoint for chat completions that plays answers which were written
// before. It is for tests.
package scripted

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"
)

// Answer is what the endpoint sends to one request. The zero value is an empty stream.
type Answer struct {
	Status int         // 0 stands for 200
	Header http.Header // beside the content type, which is that of a stream unless it is here
	Body   []byte      // sent event by event
	// Then is what the endpoint does behind the body. The zero value ends the answer in good order.
	Then Ending
	// Again is sent again and again, with [Endless].
	Again []byte
}

// Ending says what follows an answer's body.
type Ending int

// The endings.
const (
	Complete Ending = iota
	BreakOff        // the connection is closed in the middle of the answer
	Hang            // nothing comes any more, until the client goes
	Endless         // Answer.Again comes until the client goes
)

// Endpoint plays one answer after the other, whatever it is asked. The zero value has none. It is
// safe for concurrent use once it serves.
type Endpoint struct {
	Answers []Answer

	mu       sync.Mutex
	requests []Request
}

// Request is one that the endpoint has got.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Requests returns the requests so far.
func (e *Endpoint) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Request{}, e.requests...)
}

// ServeHTTP plays the next answer. When there is none left, that is an error of the server.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer, ok := e.next(Request{r.URL.Path, r.Header.Clone(), body})
	if !ok {
		http.Error(w, "the script is over", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	maps.Copy(w.Header(), answer.Header)
	if answer.Status != 0 {
		w.WriteHeader(answer.Status)
	}
	for _, event := range bytes.SplitAfter(answer.Body, []byte("\n\n")) {
		send(w, event)
	}
	switch answer.Then {
	case BreakOff:
		panic(http.ErrAbortHandler)
	case Hang:
		<-r.Context().Done()
	case Endless:
		for r.Context().Err() == nil {
			send(w, answer.Again)
		}
	}
}

func (e *Endpoint) next(request Request) (Answer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, request)
	if len(e.requests) > len(e.Answers) {
		return Answer{}, false
	}
	return e.Answers[len(e.requests)-1], true
}

// send writes and flushes. A client that has gone ends the request's context.
func send(w http.ResponseWriter, part []byte) {
	_, _ = w.Write(part)
	_ = http.NewResponseController(w).Flush()
}
