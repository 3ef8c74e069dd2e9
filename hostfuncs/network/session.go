package network

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// The limits on requests.
const (
	defaultCalls   = 20
	defaultBytes   = 8 << 20
	defaultTimeout = 30 * time.Second
	maxInFlight    = 10 // requests of a session that were sent and not yet received
	maxRedirects   = 3  // followed for one request
)

// Limits are the limits of one session. A field that is not positive means its default.
type Limits struct {
	Calls int             // requests, allowed or not, without redirects
	Bytes manifests.Bytes // of all bodies, in both directions, decompressed
}

// maxClientInFlight is the number of requests that all sessions of a client may have in flight. It leaves room for 64
// sessions at their own limit, so that a few cannot block the rest.
const maxClientInFlight = 64 * maxInFlight

// inFlight is the set of requests of a client or a session that are in flight. It is safe for concurrent use.
type inFlight struct {
	closed string // why a request is refused after close

	mu       sync.Mutex
	isClosed bool
	running  map[*exchange]struct{}
	wait     sync.WaitGroup // for running
}

// enter registers an exchange, which close cancels and waits for. A session cannot have more
// exchanges than its client, so the limit is the same for both.
func (f *inFlight) enter(e *exchange) *hostfuncs.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed {
		return &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrUnavailable, Message: f.closed}
	}
	if len(f.running) >= maxClientInFlight {
		return limit("http_in_flight", maxClientInFlight,
			fmt.Sprintf("%d requests of this tool are in flight", maxClientInFlight))
	}
	if f.running == nil {
		f.running = map[*exchange]struct{}{}
	}
	f.running[e] = struct{}{}
	f.wait.Add(1)
	return nil
}

func (f *inFlight) leave(e *exchange) {
	f.mu.Lock()
	delete(f.running, e)
	f.mu.Unlock()
	f.wait.Done()
}

func (f *inFlight) close() {
	f.mu.Lock()
	f.isClosed = true
	for e := range f.running {
		e.cancel()
	}
	f.mu.Unlock()
	f.wait.Wait()
}

// Session sends the requests of one call. It is safe for concurrent use, and must be closed.
type Session struct {
	// Journal has the requests in the order in which they began, allowed or not, and the receipts of those that
	// were denied.
	Journal journal.Journal

	client  *Client
	limits  Limits
	running inFlight

	mu        sync.Mutex
	bytesLeft int64
	kept      int64             // bytes that are reserved for the body of a request that was checked
	idle      []*connection     // most recent last
	sent      map[int]*exchange // by id; nil while it is being prepared
	nextID    int
}

func (c *Client) Open(limits Limits) *Session {
	if limits.Calls <= 0 {
		limits.Calls = defaultCalls
	}
	if limits.Bytes <= 0 {
		limits.Bytes = defaultBytes
	}
	return &Session{
		client: c, limits: limits, bytesLeft: int64(limits.Bytes),
		running: inFlight{closed: "the call is over"}, sent: map[int]*exchange{},
	}
}

// Check returns the error with which [Session.Do] would refuse a request that has a body of some bytes, so that the
// caller need not keep the body of one that is refused. A refused request counts, and is in the journal. Any other one
// leaves no trace, except that the session keeps as many bytes of its limit for the body until its next Check, Do or
// Send, which may refuse the request all the same. The field Body is ignored.
func (s *Session) Check(ctx context.Context, request Request, body int) error {
	s.release()
	request.Body = nil
	e := s.newExchange()
	var failed *hostfuncs.Error
	if s.Journal.Count() >= int64(s.limits.Calls) {
		failed = s.tooManyCalls()
	} else if failed = e.check(ctx, request); failed == nil {
		failed = s.keep(body)
	}
	if failed == nil {
		return nil
	}
	e.entry, _ = s.admit(e.started)
	e.finish(failed)
	return failed
}

// Do sends a request, follows redirects as far as the permission allows, and returns the response.
// Errors are of type *[Error].
func (s *Session) Do(ctx context.Context, request Request) (Response, error) {
	s.release()
	e, err := s.begin(ctx, request)
	if err != nil {
		return Response{}, err
	}
	e.run()
	return e.result()
}

// Send starts a request and returns its id. [Session.Receive] returns the response. An invalid or
// denied request fails at once. The request is cancelled when ctx is done.
func (s *Session) Send(ctx context.Context, request Request) (id int, err error) {
	s.release()
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

func (s *Session) reserve() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) >= maxInFlight {
		return 0, limit("http_in_flight", maxInFlight, fmt.Sprintf("%d requests were sent and not received", maxInFlight))
	}
	s.nextID++
	s.sent[s.nextID] = nil
	return s.nextID, nil
}

// Receive waits for a response. Each response can be received once. If ctx is done first, the
// response can still be received later.
func (s *Session) Receive(ctx context.Context, id int) (Response, error) {
	s.mu.Lock()
	e := s.sent[id]
	s.mu.Unlock()
	if e == nil {
		return Response{}, &hostfuncs.Error{Op: "receive", Kind: hostfuncs.ErrInvalid, Message: "no request has this id"}
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
		const message = "the response was already received"
		return Response{}, &hostfuncs.Error{Op: "receive", Kind: hostfuncs.ErrInvalid, Message: message}
	}
	return e.result()
}

// Close cancels the requests in flight, waits for them and closes the connections. Later requests
// fail with [hostfuncs.ErrUnavailable]. Close may be called more than once.
func (s *Session) Close() {
	s.running.close()
	s.closeIdle()
}

const requestKind = "network.request" // in records

// admit counts a request that begins now and returns its entry in the journal.
func (s *Session) admit(now time.Time) (journal.Entry, *hostfuncs.Error) {
	entry, count := s.Journal.Begin(tool.HostCall{Kind: requestKind, Began: now, Status: "unfinished"})
	if count > int64(s.limits.Calls) {
		return entry, s.tooManyCalls()
	}
	return entry, nil
}

func (s *Session) tooManyCalls() *hostfuncs.Error {
	return limit("http_calls", int64(s.limits.Calls), fmt.Sprintf("the call may make %d requests", s.limits.Calls))
}

// take reserves at most wanted bytes, and returns how many it reserved.
func (s *Session) take(wanted int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	granted := min(int64(wanted), s.bytesLeft)
	s.bytesLeft -= granted
	return int(granted)
}

// takeAll reserves wanted bytes, or fails and reserves none.
func (s *Session) takeAll(wanted int) *hostfuncs.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(wanted) > s.bytesLeft {
		return limit("http_bytes", int64(s.limits.Bytes), fmt.Sprintf("the call may send and receive %s", s.limits.Bytes))
	}
	s.bytesLeft -= int64(wanted)
	return nil
}

// keep is like takeAll, but release gives the bytes back.
func (s *Session) keep(wanted int) *hostfuncs.Error {
	failed := s.takeAll(wanted)
	if failed == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept += int64(wanted)
	}
	return failed
}

func (s *Session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytesLeft, s.kept = s.bytesLeft+s.kept, 0
}

// giveBack releases the bytes reserved for a request that is not sent.
func (s *Session) giveBack(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytesLeft += int64(bytes)
}
