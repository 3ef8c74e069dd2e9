package executor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/tool"
)

// SessionOptions says whose a session is and what it may do. The zero value is a session of
// the tenant "", without context values, that may call all tools.
type SessionOptions struct {
	// ID names the session in events and entries; those of two sessions should differ. Empty: an
	// id of ours.
	ID string
	// Tenant is on whose behalf calls are made. Limits, rates, breakers and answers that are
	// used again are each tenant's own.
	Tenant string
	// Context holds the values of parameters that the host fills in. They must come
	// from a flag, a token or a session, never from a request's body or arguments.
	Context map[string]string
	// Allowed names the tools that the agent may call, by name or alias. Nil allows
	// all; an empty list allows none. They are looked up for each batch; a name that no tool has
	// then allows nothing.
	Allowed []string
	// User is who the agent works for, for tools that ask. Approvals are for this user alone; it
	// decides nothing else.
	User string
	// Files are those that the host has for the session's calls.
	Files []tool.File
	// Approvals hold for the session from the beginning: those that [Session.Approvals] returned
	// of an earlier one.
	Approvals []tool.Approval
}

// Session is one conversation of an agent. Get one from [Executor.NewSession]; it needs no
// closing. It is safe for concurrent use, also by several batches at once, whose barriers then
// do not wait for each other. Of what they know, sessions share nothing but answers that nobody
// changes; those of one tenant also share its places, rates and breakers.
type Session struct {
	executor *Executor
	id       string
	number   uint64 // among the executor's sessions
	key      string // the same, for the queue
	tenant   string
	context  map[string]string
	allowed  []string // nil allows all
	user     string
	files    []tool.File
	cut      *output.Store

	approved *lru.Cache[string, tool.Approval] // see newApprovals

	mu    sync.Mutex
	calls map[string]*call // that have not ended, by call id
}

// NewSession returns a session for this executor's batches. It fails with [ErrInvalidOptions].
func (e *Executor) NewSession(options SessionOptions) (*Session, error) {
	invalid := func(format string, arguments ...any) error {
		return &Error{Op: "session", Err: fmt.Errorf("%w: %s", ErrInvalidOptions, fmt.Sprintf(format, arguments...))}
	}
	if !utf8.ValidString(options.ID) || !utf8.ValidString(options.Tenant) {
		return nil, invalid("an id or a tenant is not valid UTF-8")
	}
	for name, value := range options.Context {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, invalid("the context value %q is not valid UTF-8", name)
		}
	}
	if options.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, &Error{Op: "session", Err: fmt.Errorf("session id: %w", err)}
		}
		options.ID = id.String()
	}
	approved, err := newApprovals(options.Approvals)
	if err != nil {
		return nil, invalid("%v", err)
	}
	store, err := output.NewStore(e.options.Output.Kept)
	if err != nil {
		return nil, invalid("%v", err)
	}
	number := e.sessions.Add(1)
	return &Session{
		executor: e, id: options.ID, number: number, key: strconv.FormatUint(number, 36), tenant: options.Tenant, context: maps.Clone(options.Context), allowed: slices.Clone(options.Allowed),
		user: options.User, files: slices.Clone(options.Files), cut: store, calls: map[string]*call{}, approved: approved,
	}, nil
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Tenant returns on whose behalf the session's calls are made.
func (s *Session) Tenant() string { return s.tenant }

// Cancel ends one call of the session, by its call id, which [tool.BatchStarted] tells: it is
// stopped if it runs, with the calls that it has made, and is not started if it waits for its
// turn, an answer or an approval. Its record has the kind cancelled. No other call is touched.
// Cancel returns at once, and false where no such call is under way, as in a batch that has paused.
func (s *Session) Cancel(callID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock() // until it is cancelled: a batch that pauses must not miss it
	c, ok := s.calls[callID]
	if ok {
		c.cancel()
	}
	return ok
}

// Page returns at most so many bytes of a part of a result that was cut, beginning with the
// byte from; zero bytes stands for 32 KiB. References are in [tool.Record.Cuts]; those of other
// sessions are unknown here. The error is worded for a model.
func (s *Session) Page(reference string, from, most int64) (tool.Page, error) {
	return s.cut.Page(reference, from, most)
}

// enter notes calls that may be cancelled from now on. None takes the place of another: a state may
// say any id.
func (s *Session) enter(calls ...*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		if _, taken := s.calls[c.record.CallID]; !taken && c.phase != phaseEnded {
			s.calls[c.record.CallID] = c
		}
	}
}

// underWay reports whether a call of a state has the id of one that has not ended.
func (s *Session) underWay(calls []storedCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(calls, func(c storedCall) bool { return c.Ended == nil && s.calls[c.CallID] != nil })
}

// leave forgets a call that has ended.
func (s *Session) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
}

// park forgets calls that wait, all of them or none: it returns false if one was cancelled.
func (s *Session) park(calls []*call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		if c.phase != phaseEnded && c.isCancelled() {
			return false
		}
	}
	for _, c := range calls {
		if c.phase != phaseEnded {
			s.remove(c)
		}
	}
	return true
}

// remove forgets a call, but not another of the same id. The caller holds the lock.
func (s *Session) remove(c *call) {
	if s.calls[c.record.CallID] == c {
		delete(s.calls, c.record.CallID)
	}
}
