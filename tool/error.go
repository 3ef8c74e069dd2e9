package tool

import "strings"

// Error is the failure of one call for any reason but the tool's own report
// ([ToolFailed]), which is a [Result] and not an error.
//
// errors.Is matches it against its Kind, and a Deadline or Cancelled error also
// against the context package's errors.
type Error struct {
	Op   string // what was being done: "resolve", "arguments", "invoke", …
	Tool string // the tool's name, as it was asked for
	Kind Kind
	// Message is one sentence for the reader that Kind.Audience names. It holds no
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
