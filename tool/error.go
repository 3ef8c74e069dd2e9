package tool

import "context"

// Kind says how a call failed. The zero value means that it did not fail.
//
// Only the host determines the kind, never a guest's output, so a tool cannot claim to have been denied or stopped.
// Each Kind is an error: errors.Is(err, tool.Denied) tests the kind of an [Error].
//
// The kind also determines who should read the message. The caller, who sent the call or grants the permissions, reads
// InvalidArguments, UnknownTool, Denied, Busy, Cancelled and UnknownOutcome. The operator, who runs the host, reads
// Internal. The model, which can try other arguments or another tool, reads all other kinds.
type Kind string

// The kinds, as they appear in a record.
const (
	// ToolFailed: the tool ran to completion and reported failure itself.
	ToolFailed Kind = "tool_failed"
	// InvalidArguments: the arguments are not a JSON object that matches the schema.
	InvalidArguments Kind = "invalid_arguments"
	// UnknownTool: no tool has that name.
	UnknownTool Kind = "unknown_tool"
	// Denied: the call needed a permission that was not requested or not granted.
	Denied Kind = "denied"
	// Deadline: the call ran longer than its timeout.
	Deadline Kind = "deadline"
	// Memory: the tool exceeded its limit on linear memory.
	Memory Kind = "memory"
	// Fuel: the tool used up its instruction budget.
	Fuel Kind = "fuel"
	// Output: the tool exceeded its output limit.
	Output Kind = "output"
	// Trap: the module hit a WebAssembly trap, such as a division by zero.
	Trap Kind = "trap"
	// Busy: there was no capacity to run the call, or it could not be recorded first.
	Busy Kind = "busy"
	// Cancelled: the caller cancelled the call.
	Cancelled Kind = "cancelled"
	// UnknownOutcome: the call was run, and what came of it is not known: the process that ran it has ended, or its record
	// could not be kept. It may have had its effect. The host does not run it again.
	UnknownOutcome Kind = "unknown_outcome"
	// Internal: the host failed; the tool and the caller are not at fault.
	Internal Kind = "internal"
)

// Kinds returns every kind in the order of their declaration.
func Kinds() []Kind {
	return []Kind{ToolFailed, InvalidArguments, UnknownTool, Denied, Deadline, Memory, Fuel, Output, Trap, Busy, Cancelled,
		UnknownOutcome, Internal}
}

// Error returns the kind's name, which makes a Kind usable with errors.Is.
func (k Kind) Error() string { return string(k) }

// Is makes Deadline match [context.DeadlineExceeded] and Cancelled match [context.Canceled], whether
// or not a context caused the failure.
func (k Kind) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded:
		return k == Deadline
	case context.Canceled:
		return k == Cancelled
	}
	return false
}

// Error is the failure of one call, except for a failure that the tool itself reports
// ([ToolFailed]), which is a [Result] and not an error.
//
// It matches its Kind in errors.Is, and with the kind Deadline or Cancelled also the context package's errors.
type Error struct {
	Op   string // the operation: "resolve", "arguments", "invoke", …
	Tool string // the requested name of the tool
	Kind Kind
	// Message is one sentence for the reader that [Kind] determines. It contains no host path, address or guest output.
	Message string
	// Err is the cause. It may contain details that only the operator should see.
	Err error
}

// Error returns the message with the tool and the kind.
func (e *Error) Error() string {
	text := string(e.Kind)
	if e.Tool != "" {
		text = e.Tool + ": " + text
	}
	switch {
	case e.Message != "":
		text += ": " + e.Message
	case e.Err != nil:
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
