// Package sessions keeps the executor's sessions of callers, for as long as they are used.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/server/auth"
)

// The errors of this package, for errors.Is.
var (
	// ErrInvalidID means that a session's id is not 1 to 128 visible ASCII characters.
	ErrInvalidID = errors.New("invalid session id")
	// ErrTooMany means that the tenant has as many sessions as it may have, and all are in use.
	ErrTooMany = errors.New("too many sessions")
	// ErrClosed means that there are no sessions any more.
	ErrClosed = errors.New("closed")
)

// Options configures [New]. The zero value is usable. Negative numbers are errors.
type Options struct {
	// Agents holds the agents that callers may be restricted to. If nil, callers that are restricted
	// to an agent get no session.
	Agents *agents.Store
	// Most is the maximum number of sessions of a tenant; 0 means 1,000. One more ends one that is not in use: of
	// the token that has the most, the one that was unused for longest.
	Most int
	// Idle is the time for which a session is kept after its last use; 0 means an hour.
	Idle time.Duration
	// Logger logs tools that failed when a session ended, or a sample of many. Nil disables logging.
	Logger *slog.Logger
}

// Sessions are the sessions of all callers of one host. A caller's session is reached only by the same
// token, tenant and user. Sessions are safe for concurrent use. Close them before the host.
type Sessions struct {
	host    *caisson.Host
	options Options
	now     func() time.Time

	mu     sync.Mutex
	kept   map[owner]*entry
	swept  time.Time // when unused sessions were last looked for
	closed bool
	ending sync.WaitGroup
}

// owner is whose session it is.
type owner struct{ tenant, token, user, agent, id string }

type entry struct {
	session *executor.Session
	used    time.Time
	leases  int
}

// New returns the sessions of a host, none at first.
func New(host *caisson.Host, options Options) (*Sessions, error) {
	if options.Most < 0 || options.Idle < 0 {
		return nil, fmt.Errorf("sessions: a negative limit: %d sessions, %s idle", options.Most, options.Idle)
	}
	if options.Most == 0 {
		options.Most = 1000
	}
	if options.Idle == 0 {
		options.Idle = time.Hour
	}
	options.Logger = sampling.Logger(options.Logger)
	return &Sessions{host: host, options: options, now: time.Now, kept: map[owner]*entry{}}, nil
}

// Get returns the caller's session with an id, which is made at its first use, and a function that must
// be called when the caller has done with it for now. An empty id makes a session for this use only.
func (s *Sessions) Get(
	ctx context.Context, caller auth.Caller, id string,
) (session *executor.Session, done func(), err error) {
	if id != "" && !isID(id) {
		return nil, nil, ErrInvalidID
	}
	if _, err := s.Allowed(ctx, caller); err != nil {
		return nil, nil, err
	}
	if id == "" {
		if session, err = s.open(ctx, caller); err != nil {
			return nil, nil, err
		}
		return session, sync.OnceFunc(func() { s.end(ctx, session) }), nil
	}
	o := ownerOf(caller, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	s.expire(ctx, s.now())
	k := s.kept[o]
	if k == nil {
		if err := s.makeRoom(ctx, o); err != nil {
			return nil, nil, err
		}
		opened, err := s.open(ctx, caller)
		if err != nil {
			return nil, nil, err
		}
		k = &entry{session: opened}
		s.kept[o] = k
	}
	return k.session, s.lease(k), nil
}

// Find returns the caller's session with an id as Get does, and never makes one. The session is nil if the caller has
// none.
func (s *Sessions) Find(
	ctx context.Context, caller auth.Caller, id string,
) (session *executor.Session, done func(), err error) {
	if !isID(id) {
		return nil, nil, ErrInvalidID
	}
	if _, err := s.Allowed(ctx, caller); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	s.expire(ctx, s.now())
	k := s.kept[ownerOf(caller, id)]
	if k == nil {
		return nil, func() {}, nil
	}
	return k.session, s.lease(k), nil
}

// lease marks a session as in use until done is called. The caller must hold s.mu.
func (s *Sessions) lease(k *entry) (done func()) {
	k.used = s.now()
	k.leases++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		k.leases--
		k.used = s.now()
	})
}

func ownerOf(caller auth.Caller, id string) owner {
	return owner{caller.Tenant, caller.ID, caller.User, caller.Agent, id}
}

func isID(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// open makes a session of the executor. Its id is the executor's, because tools keep data by tenant and
// session, and two callers of a tenant may choose the same id.
func (s *Sessions) open(ctx context.Context, caller auth.Caller) (*executor.Session, error) {
	options := executor.SessionOptions{Tenant: caller.Tenant, Context: caller.Context, User: caller.User}
	if caller.Agent != "" {
		ctx := context.WithoutCancel(ctx) // the session outlives the request
		options.AllowedNow = func() ([]string, error) { return s.Allowed(ctx, caller) }
	}
	return s.host.NewSession(options)
}

// Allowed returns the names of the tools that the caller may call, or nil if it may call all.
func (s *Sessions) Allowed(ctx context.Context, caller auth.Caller) ([]string, error) {
	if caller.Agent == "" {
		return nil, nil
	}
	if s.options.Agents == nil {
		return nil, fmt.Errorf("%w: %s", agents.ErrNotFound, caller.Agent)
	}
	agent, _, err := s.options.Agents.Load(ctx, caller.Tenant, caller.Agent, s.host.Registry())
	if err != nil {
		return nil, err
	}
	return append([]string{}, agent.AllowedTools...), nil
}

// expire ends the sessions that were not used for long. The caller must hold s.mu.
func (s *Sessions) expire(ctx context.Context, now time.Time) {
	if now.Sub(s.swept) < time.Second {
		return
	}
	s.swept = now
	for o, k := range s.kept {
		if k.leases == 0 && now.Sub(k.used) > s.options.Idle {
			s.drop(ctx, o)
		}
	}
}

// makeRoom ends a session that is not in use, if the tenant of a new one has as many as it may have. With the new one
// counted, it is a session of the token that has the most, so that no token ends another's that has fewer, and of these
// the one that was unused for longest. The caller must hold s.mu.
func (s *Sessions) makeRoom(ctx context.Context, added owner) error {
	count, of := 0, map[string]int{added.token: 1}
	for o := range s.kept {
		if o.tenant == added.tenant {
			count++
			of[o.token]++
		}
	}
	if count < s.options.Most {
		return nil
	}
	var first *owner
	for o, k := range s.kept {
		if o.tenant != added.tenant || k.leases > 0 {
			continue
		}
		if first == nil || of[o.token] > of[first.token] || of[o.token] == of[first.token] &&
			k.used.Before(s.kept[*first].used) {
			first = &o
		}
	}
	if first == nil {
		return ErrTooMany
	}
	s.drop(ctx, *first)
	return nil
}

// drop ends a session in the background, since tools may take their time to hear of it. The caller must
// hold s.mu.
func (s *Sessions) drop(ctx context.Context, o owner) {
	k := s.kept[o]
	delete(s.kept, o)
	ctx = context.WithoutCancel(ctx)
	s.ending.Go(func() { s.end(ctx, k.session) })
}

// closeTime is the time that tools get to close a session that ends.
const closeTime = 10 * time.Second

func (s *Sessions) end(ctx context.Context, session *executor.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		s.options.Logger.WarnContext(ctx, "a session ended with failures", "session", session.ID(), "err", err)
	}
}

// End ends the caller's session with an id: its calls are cancelled, and tools that keep data of it are
// told. It reports whether there was one.
func (s *Sessions) End(ctx context.Context, caller auth.Caller, id string) bool {
	s.mu.Lock()
	k := s.kept[ownerOf(caller, id)]
	delete(s.kept, ownerOf(caller, id))
	s.mu.Unlock()
	if k == nil {
		return false
	}
	s.end(ctx, k.session)
	return true
}

// Close ends all sessions, and waits for that until ctx is done. Get fails afterwards.
func (s *Sessions) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for o := range s.kept {
		s.drop(ctx, o)
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.ending.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sessions are still ending: %w", ctx.Err())
	}
}
