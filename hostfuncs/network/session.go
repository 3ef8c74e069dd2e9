package network

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// The limits of requests.
const (
	DefaultCalls   = 20
	DefaultBytes   = 8 << 20
	DefaultTimeout = 30 * time.Second
	MaxInFlight    = 10 // requests of a session that were sent and not received
	MaxRedirects   = 3  // of one request
)

// Limits bound one session. A field that is not positive is its default.
type Limits struct {
	Calls int             // requests, allowed or not; redirects are not counted
	Bytes manifests.Bytes // of all bodies, in both directions, decompressed
}

var errSessionClosed = errors.New("the session is closed")

// Session is the network of one call. It is safe for concurrent use. Close it.
type Session struct {
	client *Client
	limits Limits
	wait   sync.WaitGroup // for the running

	mu        sync.Mutex
	closed    bool
	bytesLeft int64
	running   map[*exchange]struct{}
	idle      []*connection     // the latest last
	sent      map[int]*exchange // by id; nil while it is being prepared
	nextID    int
	journal   journal.Journal
}

// Open returns the network of one call.
func (c *Client) Open(limits Limits) *Session {
	if limits.Calls <= 0 {
		limits.Calls = DefaultCalls
	}
	if limits.Bytes <= 0 {
		limits.Bytes = DefaultBytes
	}
	return &Session{
		client: c, limits: limits, bytesLeft: int64(limits.Bytes),
		running: map[*exchange]struct{}{}, sent: map[int]*exchange{},
	}
}

// Do sends a request and waits for the answer, following redirects as far as the permission
// allows. Errors are of type *[Error].
func (s *Session) Do(ctx context.Context, request Request) (Response, error) {
	e, err := s.begin(ctx, request)
	if err != nil {
		return Response{}, err
	}
	e.run()
	return e.result()
}

// Send starts a request, whose answer [Session.Receive] returns under the id. What is wrong
// with the request itself, and what the permission refuses, is reported at once. The request
// ends with ctx.
func (s *Session) Send(ctx context.Context, request Request) (id int, err error) {
	id, err = s.reserve()
	if err != nil {
		return 0, err
	}
	e, err := s.begin(ctx, request)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.sent, id)
		return 0, err
	}
	s.sent[id] = e
	go e.run()
	return id, nil
}

// reserve returns the id of a request that will be sent.
func (s *Session) reserve() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) >= MaxInFlight {
		return 0, limit("http_in_flight", MaxInFlight, fmt.Sprintf("%d requests were sent and not received", MaxInFlight))
	}
	s.nextID++
	s.sent[s.nextID] = nil
	return s.nextID, nil
}

// Receive waits for an answer. Each can be received once; if ctx ends first, it can be
// received later.
func (s *Session) Receive(ctx context.Context, id int) (Response, error) {
	s.mu.Lock()
	e := s.sent[id]
	s.mu.Unlock()
	if e == nil {
		return Response{}, &Error{Op: "receive", Kind: ErrInvalid, Message: "no request has this id"}
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		failed := failure(ctx, ctx.Err())
		failed.Op = "receive"
		return Response{}, failed
	}
	s.mu.Lock()
	taken := s.sent[id] != e
	delete(s.sent, id)
	s.mu.Unlock()
	if taken {
		return Response{}, &Error{Op: "receive", Kind: ErrInvalid, Message: "the answer was received already"}
	}
	return e.result()
}

// Denials returns the receipts of what was refused, each once. Of more than 32, it is the
// first ones and the last.
func (s *Session) Denials() []tool.Denial { return s.journal.Denials() }

// HostCalls lists the first [tool.MaxHostCalls] requests, in the order in which they began.
func (s *Session) HostCalls() []tool.HostCall { return s.journal.HostCalls() }

// Calls counts all requests, whether or not they were allowed.
func (s *Session) Calls() int64 { return s.journal.Count() }

// Close cancels what is in flight, waits for it and closes the connections. Requests that come
// later fail with [ErrUnavailable]. It can be called again.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	for e := range s.running {
		e.cancel()
	}
	s.mu.Unlock()
	s.wait.Wait()
	s.closeIdle()
}

// admit counts a request that begins now and gives it its place in the record.
func (s *Session) admit(now time.Time) (journal.Entry, *Error) {
	entry, count := s.journal.Begin(tool.HostCall{Kind: "network.request", Began: now, Status: "unfinished"})
	if count > int64(s.limits.Calls) {
		return entry, limit("http_calls", int64(s.limits.Calls), fmt.Sprintf("the call may make %d requests", s.limits.Calls))
	}
	return entry, nil
}

// record writes how a request ended.
func (s *Session) record(entry journal.Entry, call tool.HostCall) {
	call.Kind = "network.request"
	s.journal.Change(entry, func(listed *tool.HostCall) { *listed = call })
}

// enter counts an exchange among those that Close cancels and waits for.
func (s *Session) enter(e *exchange) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return unavailable("the call is over", errSessionClosed)
	}
	s.running[e] = struct{}{}
	s.wait.Add(1)
	return nil
}

func (s *Session) leave(e *exchange) {
	s.mu.Lock()
	delete(s.running, e)
	s.mu.Unlock()
	s.wait.Done()
}

// take reserves up to so many bytes, and returns how many.
func (s *Session) take(wanted int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	granted := min(int64(wanted), s.bytesLeft)
	s.bytesLeft -= granted
	return int(granted)
}

// takeAll reserves so many bytes or none.
func (s *Session) takeAll(wanted int) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(wanted) > s.bytesLeft {
		return s.tooManyBytes()
	}
	s.bytesLeft -= int64(wanted)
	return nil
}

// giveBack returns what was reserved for a request that is not sent.
func (s *Session) giveBack(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytesLeft += int64(bytes)
}

func (s *Session) tooManyBytes() *Error {
	return limit("http_bytes", int64(s.limits.Bytes), fmt.Sprintf("the call may send and receive %s", s.limits.Bytes))
}
