package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The kinds of failure, for errors.Is. A run that its context ended matches
// context.DeadlineExceeded or context.Canceled instead. A run that a host function ended returns
// that function's error.
var (
	// ErrModule means that the bytes are not a module that this engine runs.
	ErrModule = errors.New("invalid module")
	// ErrTrap means that the guest trapped.
	ErrTrap = errors.New("trap")
	// ErrMemory means that the module starts with more linear memory than its limit.
	ErrMemory = errors.New("memory limit")
	// ErrHost means that a host function or the engine itself failed.
	ErrHost = errors.New("host failure")
	// ErrClosed means that the engine is closed.
	ErrClosed = errors.New("engine closed")
)

// Error describes a failed compilation or run.
type Error struct {
	Op   string // "compile", "instantiate", "start" or "run"
	Kind error  // one of the package's sentinels, or a context error
	// Library is the name of the library that is at fault, or empty.
	Library string
	Reason  string // one line without host details, such as "integer divide by zero"
	Trace   string // the guest's stack trace, one frame per line; may be empty
	Err     error  // the cause, for operators; may be nil
	refused int64  // with ErrMemory: the memory that is needed, in bytes
}

// Error returns text for operators. It includes the cause, which may contain host details.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v", e.Op, e.Kind)
	if e.Library != "" {
		text += fmt.Sprintf(": the library %q", e.Library)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.Err != nil && e.Err.Error() != e.Reason {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// ErrNotStarted means that a module's runs cannot resume a started program. Errors that wrap it are
// [NotStartedError]s.
var ErrNotStarted = errors.New("the program cannot be resumed")

// NotStartedError gives the reason why runs cannot resume a started program.
type NotStartedError struct {
	Reason string // a sentence about the program
	Err    error  // how the start ended; nil unless it failed
}

// Error returns the reason.
func (e *NotStartedError) Error() string { return fmt.Sprintf("%v: %s", ErrNotStarted, e.Reason) }

// Unwrap returns ErrNotStarted and the cause.
func (e *NotStartedError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrNotStarted}
	}
	return []error{ErrNotStarted, e.Err}
}

// moduleError is the reason why this engine does not run a module.
type moduleError struct{ reason error }

func (e *moduleError) Error() string { return fmt.Sprintf("%v: %v", ErrModule, e.reason) }

func (e *moduleError) Unwrap() []error { return []error{ErrModule, e.reason} }

// errScattered means that an image would need too many mappings, or zeros between them.
var errScattered = errors.New("its memory has data in more than 64 places that are a MiB or more apart")

// hostError carries the error of a host function through wazero, which recovers it.
type hostError struct{ err error }

func (e *hostError) Error() string { return e.err.Error() }

// PanicError is a panic in a host function. It is a bug in the host and ends only that call.
type PanicError struct {
	Function string
	Value    any
	Stack    []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic in %s: %v", e.Function, e.Value) }

// contextError returns an error if the context has ended.
func contextError(ctx context.Context, op string) error {
	if kind := ctx.Err(); kind != nil {
		return &Error{Op: op, Kind: kind, Err: context.Cause(ctx)}
	}
	return nil
}

// classify converts wazero's errors to this package's. It is the only place that knows wazero's
// errors. A trap has an unexported type there and is recognized by its text, which a test pins.
func classify(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if host, ok := errors.AsType[*hostError](err); ok {
		if bug, ok := errors.AsType[*PanicError](host.err); ok {
			return &Error{Op: op, Kind: ErrHost, Reason: "a host function panicked", Err: bug}
		}
		if cause := ctx.Err(); cause != nil && errors.Is(host.err, context.Cause(ctx)) {
			return &Error{Op: op, Kind: cause, Err: host.err}
		}
		return host.err
	}
	if reason, trace, isTrap := trapOf(err); isTrap {
		return &Error{Op: op, Kind: ErrTrap, Reason: reason, Trace: trace}
	}
	if op == "instantiate" {
		return &Error{Op: op, Kind: ErrModule, Reason: "the module cannot be instantiated", Err: err}
	}
	return &Error{Op: op, Kind: ErrHost, Reason: "the engine failed", Err: err}
}

// stackOverflow is the reason of a trap when the stack is exhausted, whether wazero's own limit or
// the limit added by rewriting was hit first.
const stackOverflow = "stack overflow"

// trapOf looks for a trap among the errors that err wraps. The whole text must have the form of a
// trap: other wazero errors contain names that the module chose.
func trapOf(err error) (reason, trace string, ok bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if reason, trace, ok = splitTrap(err.Error()); ok {
			return reason, trace, true
		}
	}
	return "", "", false
}

// splitTrap splits a trap's text: "wasm error: REASON\
// wasm stack trace:\
// \       FRAME…", or only the reason for the one trap that has no trace.
func splitTrap(text string) (reason, trace string, ok bool) {
	const prefix, separator = "wasm error: ", "\nwasm stack trace:\n\t"
	if text == stackOverflow {
		return stackOverflow, "", true
	}
	text, ok = strings.CutPrefix(text, prefix)
	if !ok {
		return "", "", false
	}
	reason, trace, _ = strings.Cut(text, separator)
	return reason, strings.ReplaceAll(trace, "\n\t", "\n"), true
}
