package secrets

import "errors"

// The kinds of failure, which are for the operator. Every [Error] matches exactly one of them, or
// [hostfuncs.ErrInvalid]: a request of a guest that its secret cannot be injected into.
var (
	// ErrGrant is an invalid grant, or one that conflicts with another grant.
	ErrGrant = errors.New("invalid grant")
	// ErrSource is a file or a key with a value that cannot be read.
	ErrSource = errors.New("unreadable source")
	// ErrValue is a value that cannot be used.
	ErrValue = errors.New("unusable value")
)

// Error is the failure of an operation on a secret. It never holds a value or a part of one.
type Error struct {
	Name string // of the secret
	Kind error  // one of these sentinels, or hostfuncs.ErrInvalid
	// Message is one sentence. If Kind is hostfuncs.ErrInvalid, it is safe to show to a guest. Otherwise
	// it is for the operator, and may name files of the host.
	Message string
	// Origin is where the grant is written. It may be empty.
	Origin string
}

// Error returns the secret's name, the grant's origin and the message.
func (e *Error) Error() string {
	text := "secret " + e.Name
	if e.Origin != "" {
		text += " (" + e.Origin + ")"
	}
	return text + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Kind }
