package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/permit"
)

// Kinds of failures, for [errors.Is].
var (
	// ErrGrant means that a grant or a denial of the operator's cannot be used, such as a grant of a directory that does
	// not exist. Every tool that the grant is for fails with the same cause, even if it does not request the permission.
	ErrGrant = errors.New("invalid grant")
	// ErrModule means that a tool's module cannot be read or is not a module that this runtime can run.
	ErrModule = errors.New("module cannot be used")
	// ErrDigest means that a tool's module is not the one that the manifest pins, or no longer the one that the tool
	// had.
	ErrDigest = errors.New("module is not the pinned one")
	// ErrInterpreter means that the interpreter of a script tool is not installed, or was changed.
	ErrInterpreter = errors.New("the interpreter cannot be used")
	// ErrRunaway means that a guest could not be stopped. That is a bug in this package; see [Options.OnRunaway].
	ErrRunaway = errors.New("the guest could not be stopped: this is a bug in Caisson")
)

// Error is a failure to make or close a runtime, or to load a tool. Failures of calls are [tool.Error]s.
type Error struct {
	Op   string // "new", "load" or "close"
	Tool string // the tool's name; only if Op is "load"
	// Grant is the grant or the denial that cannot be used, if Err wraps [ErrGrant]. It is zero for one that is not
	// of a directory; those of secrets wrap a secrets.Error instead.
	Grant GrantPlace
	Err   error // the cause
}

// GrantPlace says which grant or denial of a directory an [Error] is about.
type GrantPlace struct {
	Path   string // the guest path
	Origin string // where the operator wrote it, such as "caisson.yaml:14"; may be empty
	Denied bool   // whether it is a denial
}

// Error returns the operation and the cause.
func (e *Error) Error() string { return fmt.Sprintf("runtime: %s: %v", e.Op, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// grantError is an [ErrGrant]. Its text is the cause's, which names the grant and its origin.
type grantError struct{ error }

func (e *grantError) Unwrap() []error { return []error{ErrGrant, e.error} }

func notLoaded(tool string, err error) error {
	failure := &Error{Op: "load", Tool: tool, Err: err}
	if wrong, ok := errors.AsType[*permit.Error](err); ok {
		failure.Grant = GrantPlace{Path: wrong.Path, Origin: wrong.Origin, Denied: wrong.Denied}
	}
	return failure
}

// notRead returns the error of a call whose context ended before its module was read.
func notRead(ctx context.Context) error {
	return &engine.Error{Op: "compile", Kind: ctx.Err(), Err: context.Cause(ctx)}
}
