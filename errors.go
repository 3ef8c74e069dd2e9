package caisson

import (
	"errors"
	"fmt"
)

// Kinds of failures of a [Host], for errors.Is.
var (
	ErrInvalidOptions = errors.New("invalid options")
	ErrPolicy         = errors.New("the policy cannot be used")
	// ErrRuntime has its reason in the options, the cache folder or the compiler.
	ErrRuntime = errors.New("the runtime cannot be started")
	ErrTools   = errors.New("the tools cannot be loaded")
	ErrContext = errors.New("the context value is fixed by the policy")
	ErrNotKept = errors.New("no record of such a call is kept")
	ErrFilter  = errors.New("no calls can be asked for in this way")
	ErrRecords = errors.New("the records cannot be read")
	ErrPaused  = errors.New("the call waits for an answer, which only a batch can get")
	ErrExposed = errors.New("a tool may write to a folder that the host keeps: its cache or its records")
)

// Error is a failure of a [Host] itself. Failures of calls are in their records. Errors of the
// executor are [*executor.Error]s.
type Error struct {
	Op   string // "open", "session", "call", "stream" or "records"
	Kind error  // one of the package's errors
	Err  error  // the cause
}

// Error returns the operation, the kind and the cause.
func (e *Error) Error() string { return fmt.Sprintf("caisson: %s: %v: %v", e.Op, e.Kind, e.Err) }

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }
