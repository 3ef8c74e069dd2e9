package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
)

// by is who makes a request, and in which session.
type by struct {
	// key is the same for requests of the same caller in the same session, and for no others.
	key string
	// tenant is the [memory.Sharer].
	tenant  string
	may     func(auth.Scope) bool
	allowed func() ([]string, error)
	// session returns the executor's session, and what to call when the request has ended.
	session func(context.Context) (*executor.Session, func(), error)
	// found is session without making one: the session is nil if there is none.
	found func(context.Context) (*executor.Session, func(), error)
	// gone is done when nobody waits for the answer any more.
	gone context.Context
	// answers has a wait group wait until the request has been answered.
	answers func(*sync.WaitGroup)
}

// maxWait is how long an answer waits until there is room for it.
const maxWait = 10 * time.Second

// reserve waits until there is room for as many bytes of the answer, which its client may leave unread. Over lines, the
// connection bounds them.
func (b *by) reserve(bytes int) error {
	ctx, cancel := context.WithTimeout(b.gone, maxWait)
	defer cancel()
	if memory.ReserveOneOfMany(ctx, bytes) != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: "the open requests of the tenant, or of all, have too many bytes in answers that were not taken; try " +
				"again later"}
	}
	return nil
}

type lineKey struct{}

// line is who sends lines: somebody who started the program and may do everything.
type line struct {
	session *executor.Session
	gone    context.Context
}

func (l line) found(context.Context) (*executor.Session, func(), error) {
	return l.session, func() {}, nil
}

// by returns who makes a request.
func (s *Server) by(ctx context.Context, session *sdk.ServerSession, extra *sdk.RequestExtra) (by, error) {
	if l, ok := ctx.Value(lineKey{}).(line); ok {
		return by{
			key:     l.session.ID(),
			may:     func(auth.Scope) bool { return true },
			allowed: l.session.Allowed,
			session: l.found,
			found:   l.found,
			gone:    l.gone,
			answers: func(*sync.WaitGroup) {}, // who serves the lines waits
		}, nil
	}
	return s.web.by(session, extra)
}

// failed returns the answer to a request that the server could not handle. The client sees an id, under
// which the operator finds the reason in the log. That a token's agent was removed is no failure of the server.
func (s *Server) failed(ctx context.Context, method string, err error) error {
	if errors.Is(err, agents.ErrNotFound) {
		return refused("the token's agent does not exist, so it may call no tools")
	}
	if errors.Is(err, errGone) {
		return refused("the request has ended") // its client has disconnected, and nothing has failed
	}
	id := rand.Text()
	s.failures.ErrorContext(ctx, "a request failed", "id", id, "method", method, "err", err)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error " + id}
}
