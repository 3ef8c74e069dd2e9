package wasm

import (
	"errors"
	"fmt"
)

// What can be wrong with a module. Every [*Error] wraps one of these.
var (
	// ErrMalformed: the bytes are not a WebAssembly module, or refer to what is not there.
	ErrMalformed = errors.New("malformed module")
	// ErrInvalid: the module breaks a rule of validation, such as one of types.
	ErrInvalid = errors.New("invalid module")
	// ErrUnsupported: the module needs a proposal that is switched off.
	ErrUnsupported = errors.New("unsupported module")
	// ErrLimit: the module is over one of the [Bounds].
	ErrLimit = errors.New("module over a limit")
	// ErrUninstantiable: the module is valid, and traps whenever it is instantiated.
	ErrUninstantiable = errors.New("module that cannot be instantiated")
)

// ErrBounds means that [Bounds] hold a negative value: a mistake of the caller, not of
// the module.
var ErrBounds = errors.New("invalid bounds")

// Error is why a module was refused.
type Error struct {
	// Kind is ErrMalformed, ErrInvalid, ErrUnsupported, ErrLimit or ErrUninstantiable.
	Kind error
	// Section names the section, such as "code". It is empty for what belongs to no
	// section, such as the header.
	Section string
	// Offset is that of the offending byte from the start of the module.
	Offset int
	// Message says what was found there and what was expected.
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Section == "" {
		return fmt.Sprintf("module at byte %d: %s", e.Offset, e.Message)
	}
	return fmt.Sprintf("%s section at byte %d: %s", e.Section, e.Offset, e.Message)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }
