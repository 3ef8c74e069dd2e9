package wasm

import (
	"errors"
	"fmt"
)

// Kinds of errors. Every [*Error] wraps one of these.
var (
	// ErrMalformed means that the bytes are not a WebAssembly module, or refer to something that
	// does not exist.
	ErrMalformed = errors.New("malformed module")
	// ErrTruncated is ErrMalformed of a module that ends within its header or a section.
	ErrTruncated = fmt.Errorf("%w that is cut off", ErrMalformed)
	// ErrInvalid means that the module violates a validation rule, such as a type rule.
	ErrInvalid = errors.New("invalid module")
	// ErrUnsupported means that the module needs a disabled proposal, or uses a reserved name.
	ErrUnsupported = errors.New("unsupported module")
	// ErrLimit means that the module exceeds one of the [Bounds].
	ErrLimit = errors.New("module over a limit")
	// ErrUninstantiable means that the module is valid but traps whenever it is instantiated.
	ErrUninstantiable = errors.New("module that cannot be instantiated")
)

// ErrBounds means that a limit given by the caller, such as a field of [Bounds], is invalid. The
// module is not at fault.
var ErrBounds = errors.New("invalid bounds")

// Error describes why a module was rejected.
type Error struct {
	// Kind is ErrMalformed, ErrTruncated, ErrInvalid, ErrUnsupported, ErrLimit or ErrUninstantiable.
	Kind error
	// Section is the name of the section, such as "code". It is empty for errors outside a section,
	// such as in the header.
	Section string
	// Offset is the offset of the offending byte from the start of the module.
	Offset int
	// Message describes the problem, such as the value found and the value expected.
	Message string
	// Proposal is the proposal that the module needs, such as [ExceptionHandling]. It is empty if
	// the module was rejected for another reason.
	Proposal string
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
