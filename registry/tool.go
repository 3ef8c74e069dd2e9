package registry

import (
	"context"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Tool is what a registry holds. Its methods must be safe for concurrent use.
//
// A tool may also be a [Closer], be [Guarded] or [Explained], and have an [Availability].
type Tool interface {
	// Manifest describes the tool. It is asked for once, when the tool is registered,
	// so a tool cannot change its name afterwards.
	Manifest() *manifests.Manifest
	// Invoke runs one call. The outcome's Result is always filled in. The error is
	// nil when the tool ran to an end of its own, also when it reported failure. It is
	// a *tool.Error otherwise, and Result then carries the same kind and message.
	Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)
}

// Closer is a [Tool] that holds resources. Close is called once, after the last call
// has ended. The only exception is a call that outlasts the context of
// [Registry.Close]: it may then still be running.
type Closer interface {
	Close(ctx context.Context) error
}

// Availability is a [Tool] that cannot always be used, for example because a setting
// that it requires is missing.
type Availability interface {
	// Unavailable returns why the tool cannot be used now, or "" if it can. The reason
	// is one line that people and models may read: no secret, no path of the host.
	// It must return at once.
	Unavailable() string
}

// Guarded is a [Tool] that says whether its calls must be approved, and what an approval is bound
// to. Of one that is not Guarded, calls must be approved if its manifest says that it is destructive.
type Guarded interface {
	// Asks says why calls must be approved, in one line that people and models may read; "" where
	// they need not be. It must return at once.
	Asks() string
	// Identity returns a digest of all that decides what a call of the tool can do: its module, its
	// manifest and its effective permissions. It may have to read the module.
	Identity(ctx context.Context) (string, error)
}

// Explained is a [Tool] that says what became of the permissions that its manifest asks for, for
// whoever approves of its calls.
type Explained interface {
	// Decisions returns a list that the caller may keep. It must return at once.
	Decisions() []tool.Decision
}

// unavailable returns why a tool cannot be used, or "". A tool that panics when it is asked
// must not take with it whoever lists the tools.
func unavailable(t Tool) (reason string) {
	a, ok := t.(Availability)
	if !ok {
		return ""
	}
	defer func() {
		if recover() != nil {
			reason = "it failed when it was asked whether it can be used"
		}
	}()
	return a.Unavailable()
}

// closeTool closes a tool that can be closed.
func closeTool(ctx context.Context, t Tool) error {
	if c, ok := t.(Closer); ok {
		return c.Close(ctx)
	}
	return nil
}
