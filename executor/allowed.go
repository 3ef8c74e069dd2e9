package executor

import (
	"fmt"
	"sync"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// allowedFor is how long an answer of [SessionOptions.AllowedNow] holds for the calls of a batch.
const allowedFor = time.Second

// allowed is which tools the agent of a batch may call.
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

// allowedNow returns what the session's agent may call now.
func (s *Session) allowedNow() (allowedTools, error) {
	names, err := s.allowed()
	if err != nil {
		return nil, fmt.Errorf("the tools that the agent may call are not known: %w", err)
	}
	if names == nil {
		return nil, nil
	}
	tools := make(allowedTools, len(names))
	for _, name := range names {
		if entry, ok := s.executor.resolver.Get(name); ok {
			tools[entry.Name] = true
		}
	}
	return tools, nil
}

// newAllowed asks what a session's agent may call in a batch that begins.
func newAllowed(s *Session) (*allowed, error) {
	asked := time.Now()
	tools, err := s.allowedNow()
	if err != nil {
		return nil, err
	}
	return &allowed{session: s, began: tools, asked: asked, now: tools}, nil
}

// still reports whether the agent may call a tool that is about to start. If that cannot be known, it may not.
func (a *allowed) still(name string) (bool, error) {
	if a.session.fixed {
		return a.began.allows(name), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.asked) >= allowedFor {
		tools, err := a.session.allowedNow()
		if err != nil {
			return false, err
		}
		a.asked, a.now = now, tools
	}
	return a.now.allows(name), nil
}

// isAllowed refuses a call that is about to start if the agent has lost its tool since the batch began.
func (c *call) isAllowed() bool {
	if c.brought {
		return true
	}
	still, err := c.batch.allowed.still(c.tool)
	if !still {
		c.cause = err
		c.refuseTool("allowed_tools", c.tool+notAllowed)
	}
	return still
}

// notAllowed says of a tool that the agent may not call it.
const notAllowed = " is not among the tools that this agent may call"

// refuseTool denies a call because of its tool.
func (c *call) refuseTool(permission, reason string) {
	c.refuse(tool.Denied, reason, tool.Denial{Value: c.record.Function.Name, Permission: permission, Rule: reason})
}
