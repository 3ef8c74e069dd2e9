// Package auth identifies the caller of a request and their permissions: callers, scopes, and the tokens by which
// a caller is known.
package auth

import (
	"context"
	"slices"
)

// Scope is one thing that a caller may do.
type Scope string

// The scopes. None implies another.
const (
	Read    Scope = "read"    // see tools, agents, and the calls and runs of the caller's tenant
	Call    Scope = "call"    // call tools
	Approve Scope = "approve" // approve and refuse calls that need it
	Admin   Scope = "admin"   // change the tenant's agents
)

// Scopes returns all scopes, in the order in which help texts list them.
func Scopes() []Scope { return []Scope{Read, Call, Approve, Admin} }

// Caller is who makes a request. The zero value may do nothing. It must not be changed once it is in a
// context.
type Caller struct {
	// ID is the id of the token, or empty without one.
	ID string
	// Tenant is on whose behalf requests are made. Callers of one tenant share its runs, records and
	// agents; nothing is shared between tenants.
	Tenant string
	// User is the person for whom the tenant's agent works, if that is known.
	User   string
	Scopes []Scope
	// Context holds context values that the token or the command line sets for the caller's calls. A
	// request cannot set any.
	Context map[string]string
	// Agent is the only agent whose tools the caller may call. Empty allows all tools.
	Agent string
}

// May reports whether the caller has a scope.
func (c Caller) May(scope Scope) bool { return slices.Contains(c.Scopes, scope) }

type key struct{}

// With returns a context that carries the caller.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the caller of a request. Without one it returns false, and the caller may do nothing.
func From(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(key{}).(Caller)
	return c, ok
}
