package tool

import (
	"context"
	"strings"
)

// Kind says how a call failed. The zero value means that it did not.
//
// Kinds come from what the host saw, never from what a guest printed, so a tool
// cannot claim to have been denied or stopped. Each Kind is an error, so that
// errors.Is(err, tool.Denied) asks for the kind of an [Error].
//
// A kind also says who should read the message. The caller, who sent the call or
// grants the permissions: InvalidArguments, UnknownTool, Denied, Busy, Cancelled.
// The operator, who runs the host: Internal. The model, which can try other
// arguments or another tool: all others.
type Kind string

// The kinds, as they appear in a record.
const (
	// ToolFailed: the tool ran to its end and reported failure itself.
	ToolFailed Kind = "tool_failed"
	// InvalidArguments: the arguments are not a JSON object that fits the schema.
	InvalidArguments Kind = "invalid_arguments"
	// UnknownTool: no tool has that name.
	UnknownTool Kind = "unknown_tool"
	// Denied: the call needed a permission that was not both requested and granted.
	Denied Kind = "denied"
	// Deadline: the call ran longer than its timeout.
	Deadline Kind = "deadline"
	// Memory: the tool asked for more linear memory than its limit.
	Memory Kind = "memory"
	// Fuel: the tool used up its instruction budget.
	Fuel Kind = "fuel"
	// Output: the tool wrote more output than its limit.
	Output Kind = "output"
	// Trap: the module stopped at a WebAssembly trap, such as a division by zero.
	Trap Kind = "trap"
	// Busy: there was no room to run the call.
	Busy Kind = "busy"
	// Cancelled: the caller gave the call up.
	Cancelled Kind = "cancelled"
	// Internal: the host failed; the tool and the caller are not at fault.
	Internal Kind = "internal"
)

// Kinds returns every kind in the order of their declaration.
func Kinds() []Kind {
	return []Kind{ToolFailed, InvalidArguments, UnknownTool, Denied, Deadline, Memory, Fuel, Output, Trap, Busy, Cancelled, Internal}
}

// Error returns the kind's name, which makes a Kind usable with errors.Is.
func (k Kind) Error() string { return string(k) }

// Is lets a deadline or a cancellation be recognised by the standard library's
// errors, whether or not a context caused it.
func (k Kind) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded:
		return k == Deadline
	case context.Canceled:
		return k == Cancelled
	}
	return false
}

// Error is the failure of one call for any reason but the tool's own report
// ([ToolFailed]), which is a [Result] and not an error.
//
// errors.Is matches it against its Kind, and a Deadline or Cancelled error also
// against the context package's errors.
type Error struct {
	Op   string // what was being done: "resolve", "arguments", "invoke", …
	Tool string // the tool's name, as it was asked for
	Kind Kind
	// Message is one sentence for the reader that [Kind] assigns. It holds no
	// host path, address or guest output.
	Message string
	// Err is the cause. It may hold details that only the operator should see.
	Err error
}

// Error returns the message with the tool and the kind.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Tool != "" {
		b.WriteString(e.Tool)
		b.WriteString(": ")
	}
	b.WriteString(string(e.Kind))
	if e.Message != "" {
		b.WriteString(": ")
		b.WriteString(e.Message)
	} else if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
