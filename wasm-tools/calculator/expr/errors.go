package expr

import (
	"errors"
	"fmt"
)

// Kind says how an evaluation failed. Each Kind is an error, so that
// errors.Is(err, expr.Syntax) asks for the kind of an [Error].
type Kind string

// The kinds of failure.
const (
	// Syntax: the text is not an expression.
	Syntax Kind = "syntax"
	// Undefined: the expression has no real value, such as a division by zero.
	Undefined Kind = "undefined"
	// Limit: the expression or a value in it is over one of the package's bounds.
	Limit Kind = "limit"
	// Option: an option is out of range.
	Option Kind = "option"
)

// Error returns the kind's name, which makes a Kind usable with errors.Is.
func (k Kind) Error() string { return string(k) }

// Error is the only error type of this package.
type Error struct {
	Op   string // "parse" or "evaluate"
	Kind Kind
	// Column is the place in the expression in characters, from 1. It is 0 where
	// the failure has no place.
	Column int
	// Message says what is wrong, Hint what to write instead. Hint may be empty.
	Message string
	Hint    string
}

// Error returns one line: the message, the column and the hint.
func (e *Error) Error() string {
	text := e.Message
	if e.Column > 0 {
		text = fmt.Sprintf("%s at column %d", text, e.Column)
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

func syntaxError(column int, message, hint string) error {
	return &Error{Op: "parse", Kind: Syntax, Column: column, Message: message, Hint: hint}
}

// undefined and tooMuch make errors without a place; placed adds it.
func undefined(message, hint string) error {
	return &Error{Op: "evaluate", Kind: Undefined, Message: message, Hint: hint}
}

func tooMuch(message, hint string) error {
	return &Error{Op: "evaluate", Kind: Limit, Message: message, Hint: hint}
}

func placed(err error, column int) error {
	var failure *Error
	if !errors.As(err, &failure) || failure.Column > 0 {
		return err
	}
	copied := *failure
	copied.Column = column
	return &copied
}
