package executor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// allowedFor is the time for which an answer of [SessionOptions.AllowedNow] applies to the calls of a batch.
const allowedFor = time.Second

// allowed tracks which tools a batch's agent may call.
type allowed struct {
	session *Session
	began   allowedTools // when the batch began or resumed

	mu    sync.Mutex
	asked time.Time
	now   allowedTools
}

// allowedTools are registered names. Nil allows all.
type allowedTools map[string]bool

func (a allowedTools) allows(name string) bool { return a == nil || a[name] }

func (s *Session) allowedNow(ctx context.Context) (allowedTools, error) {
	names := s.names
	if s.ask != nil {
		var err error
		if names, err = isolateUntil(ctx, s.ask); err != nil {
			return nil, fmt.Errorf("the tools that the agent may call are not known: %w", err)
		}
	}
	if names == nil {
		return nil, nil
	}
	tools := make(allowedTools, len(names))
	for _, name := range names {
		entry, ok, err := lookUp(s.executor.resolver, name)
		if err != nil {
			return nil, err
		}
		if ok {
			tools[entry.Name] = true
		}
	}
	return tools, nil
}

// newAllowed asks which tools a session's agent may call in a batch that begins.
func newAllowed(ctx context.Context, s *Session) (*allowed, error) {
	asked := time.Now()
	tools, err := s.allowedNow(ctx)
	if ended(ctx) != nil {
		tools, err = allowedTools{}, nil // no call starts, and each is recorded as skipped
	}
	if err != nil {
		return nil, err
	}
	return &allowed{session: s, began: tools, asked: asked, now: tools}, nil
}

// still reports whether the agent may call a tool that is about to start. If that cannot be known, it may not.
func (a *allowed) still(ctx context.Context, name string) (bool, error) {
	if a.session.ask == nil {
		return a.began.allows(name), nil
	}
	a.mu.Lock()
	asked, tools := a.asked, a.now
	a.mu.Unlock()
	if now := time.Now(); now.Sub(asked) >= allowedFor {
		var err error
		if tools, err = a.session.allowedNow(ctx); err != nil {
			return false, err
		}
		a.mu.Lock()
		if now.After(a.asked) {
			a.asked, a.now = now, tools
		}
		a.mu.Unlock()
	}
	return tools.allows(name), nil
}

// isAllowed refuses a call that is about to start if the agent has lost its tool since the batch began.
func (c *call) isAllowed(ctx context.Context) bool {
	if c.brought {
		return true
	}
	still, err := c.batch.allowed.still(ctx, c.tool)
	switch late := ended(ctx); {
	case late != nil:
		c.refuse(notStarted(late))
	case !still:
		c.cause = err
		c.refuseTool("allowed_tools", c.tool+notAllowed)
	default:
		return true
	}
	return false
}

// notAllowed says of a tool that the agent may not call it.
const notAllowed = " is not among the tools that this agent may call"

func (c *call) refuseTool(permission, reason string) {
	c.refuse(tool.Denied, reason, tool.Denial{Value: c.record.Function.Name, Permission: permission, Rule: reason})
}
