package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// SessionOptions set a session's tenant and user, and what its agent may do. The zero value is a session of
// the tenant "" without context values that may call all tools.
type SessionOptions struct {
	// ID names the session in events and entries and should be unique. If it is empty, the executor
	// makes one.
	ID string
	// Tenant is the tenant that calls are made for. Limits, rates, circuit breakers and cached results are
	// kept per tenant.
	Tenant string
	// Context holds the values of parameters that the host fills in. They must come
	// from a flag, a token or a session, never from a request's body or arguments.
	Context map[string]string
	// Allowed names the tools that the agent may call, by name or alias. Nil allows
	// all; an empty list allows none. Names are resolved for each batch; unknown ones allow nothing.
	Allowed []string
	// AllowedNow, unless it is nil, returns these names in place of Allowed, which may change. It is asked when a batch
	// begins or resumes, and before a call of it starts if it has not been asked for a second. It may be called
	// concurrently. If it fails, so does the batch, and later calls of a batch that has begun are denied.
	AllowedNow func() ([]string, error)
	// User is the user that the agent works for, which tools can read. Approvals and cached results are only for this
	// user; it decides nothing else.
	User string
	// Files are the host's files for the session's calls.
	Files []tool.File
	// Approvals hold from the beginning. They come from [Session.Approvals] of an earlier session.
	Approvals []tool.Approval
}

// Session is one conversation of an agent. Get one from [Executor.NewSession]. It needs no closing unless a tool keeps
// data of it ([registry.SessionCloser]). It is safe for concurrent use, also by several batches at once, whose barriers
// do not wait for each other. Sessions of one tenant share cached results, slots, rates and circuit breakers; nothing
// else is shared.
type Session struct {
	executor *Executor
	id       string
	key      string // unique in the executor
	tenant   string
	context  map[string]string
	user     string
	files    []tool.File
	cut      *output.Store

	approved *pause.Approvals

	names []string                 // the allowed tools, if ask is nil; see SessionOptions
	ask   func() ([]string, error) // may be nil

	mu      sync.Mutex
	calls   map[string]*call // that have not ended, by call id
	closed  bool
	batches int           // that are running
	idle    chan struct{} // closed when the session is and no batch runs
	told    chan struct{} // closed when tools know that the session has ended
	err     error         // of Close; set before told is closed
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
	approved, err := pause.NewApprovals(options.Approvals)
	if err != nil {
		return nil, invalid("%v", err)
	}
	store, err := e.kept.Of(options.Tenant, e.options.Output.KeptPerTenant).NewStore(e.options.Output.Kept)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return &Session{
		executor: e, id: options.ID, key: strconv.FormatUint(e.sessions.Add(1), 36), tenant: options.Tenant,
		context: maps.Clone(options.Context),
		user:    options.User, files: slices.Clone(options.Files), cut: store, calls: map[string]*call{}, approved: approved,
		names: slices.Clone(options.Allowed), ask: options.AllowedNow, idle: make(chan struct{}), told: make(chan struct{}),
	}, nil
}

// Close ends the session: it cancels calls that have not ended, waits for them, and tells the tools that keep data
// of sessions ([registry.SessionCloser]). Later batches of the session are refused, also those that paused; results
// that were cut stay readable. If ctx ends first, tools are told without waiting, and the error says so. A second Close
// waits for the first and returns its error.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if first && s.batches == 0 {
		close(s.idle)
	}
	for _, c := range s.calls {
		c.cancel()
	}
	s.mu.Unlock()
	if !first {
		select {
		case <-s.told:
			return s.err
		case <-ctx.Done():
			return &Error{Op: "close session", Err: ctx.Err()}
		}
	}
	defer close(s.told)
	var late error
	select {
	case <-s.idle:
	case <-ctx.Done():
		late = fmt.Errorf("calls are still running: %w", ctx.Err())
	}
	if tools, ok := s.executor.resolver.(registry.SessionCloser); ok {
		late = errors.Join(late, tools.CloseSession(ctx, s.tenant, s.id))
	}
	if late != nil {
		s.err = &Error{Op: "close session", Err: late}
	}
	return s.err
}

// begin admits a batch, which must finish, or returns false if the session is closed.
func (s *Session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.batches++
	return true
}

func (s *Session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches--
	if s.closed && s.batches == 0 {
		close(s.idle)
	}
}

// Allowed returns the names of the tools that the session's agent may call now, as [SessionOptions] says of them. Nil
// allows all. The caller must not change them.
func (s *Session) Allowed() ([]string, error) {
	if s.ask != nil {
		return s.ask()
	}
	return s.names, nil
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Cancel cancels one call of the session by its call id, which [tool.BatchStarted] lists. A running call
// is stopped, with the calls that it has made; one that waits for its turn, an output or an approval
// is not started. Its record has the kind cancelled. No other call is affected. Cancel returns at
// once; it returns false if no such call is in progress, as in a paused batch.
func (s *Session) Cancel(callID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock() // until it is cancelled: a batch that pauses must not miss it
	c, ok := s.calls[callID]
	if ok {
		c.cancel()
	}
	return ok
}

// Page returns at most limit bytes of a result part that was cut, starting at the byte from. A limit of zero means
// 32 KiB. References are in [tool.Record.Cuts]; those of other sessions are unknown. The error is
// worded for a model.
func (s *Session) Page(reference string, from, limit int64) (tool.Page, error) {
	return s.cut.Page(reference, from, limit)
}

// Approvals returns the approvals that hold in the session, oldest first, for the [SessionOptions] of a later
// session. They are approvals of all calls with the same effect, whose fingerprint is that effect, and
// approvals of single calls in batches that paused before these could run. They are authority: store them
// where only those who may approve can write.
func (s *Session) Approvals() []tool.Approval { return s.approved.List() }

// enter registers calls for Cancel. None replaces another: a state may contain any id.
func (s *Session) enter(calls ...*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		if _, taken := s.calls[c.record.CallID]; !taken && c.phase != phaseEnded {
			s.calls[c.record.CallID] = c
		}
		if s.closed { // since the batch was admitted
			c.cancel()
		}
	}
}

// inProgress reports whether a call of a state has the id of one that has not ended.
func (s *Session) inProgress(calls []pause.Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(calls, func(c pause.Call) bool { return c.Ended == nil && s.calls[c.CallID] != nil })
}

func (s *Session) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
}

// park unregisters the waiting calls of a batch that pauses. If one was cancelled, it does nothing and returns false.
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

// remove unregisters a call, but not another with the same id. The caller must hold s.mu.
func (s *Session) remove(c *call) {
	if s.calls[c.record.CallID] == c {
		delete(s.calls, c.record.CallID)
	}
}

// digest identifies the session in a state. It covers the batch's id, so that two digests cannot be linked.
func (s *Session) digest(batch string) string {
	return digestOf(appendValues(appendText(nil, "caisson-session/v1", batch, s.tenant), s.context))
}
