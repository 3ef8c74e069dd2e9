package secrets

import (
	"errors"
	"strings"
)

// The failures of this package. Every error that it returns matches exactly one of them
// with errors.Is.
var (
	// ErrGrant: a grant contradicts itself or another one. For the operator.
	ErrGrant = errors.New("invalid grant")
	// ErrSource: the file or the key that holds a value cannot be read. For the operator.
	ErrSource = errors.New("unreadable source")
	// ErrValue: a value cannot be used. For the operator.
	ErrValue = errors.New("unusable value")
	// ErrInvalid: a request has no room for its secret. For the guest that made it.
	ErrInvalid = errors.New("invalid request")
)

// Error is the failure of one operation on one secret. It never holds a value, nor any
// part of one.
type Error struct {
	Op   string // "grant", "read" or "inject"
	Name string // of the secret
	Kind error  // a sentinel of this package
	// Message is one sentence. With ErrInvalid it is safe to show to a guest. Otherwise it
	// is for the operator, and may name files of the host.
	Message string
	// Origin is where the grant is written; it may be empty.
	Origin string
}

// Error returns the secret's name, the grant's origin and the message.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("secret ")
	b.WriteString(e.Name)
	if e.Origin != "" {
		b.WriteString(" (")
		b.WriteString(e.Origin)
		b.WriteString(")")
	}
	b.WriteString(": ")
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }
