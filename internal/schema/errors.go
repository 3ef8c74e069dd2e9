package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrSchema is wrapped by every error of [Compile].
	ErrSchema = errors.New("invalid JSON Schema")
	// ErrValue is wrapped by every [ViolationError].
	ErrValue = errors.New("the value does not fit the schema")
)

// Problem is one thing that is wrong with a schema.
type Problem struct {
	// Path is the location in the schema, such as properties.url.type. It is empty for the schema as a whole.
	Path string `json:"path"`
	// Message describes the mistake and the expected value.
	Message string `json:"message"`
}

// Error holds the problems of a schema, sorted by path: at least one and at most about a hundred.
type Error struct {
	Problems []Problem
}

// Error returns the problems on one line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = at(p.Path, p.Message)
	}
	return ErrSchema.Error() + ": " + strings.Join(lines, "; ")
}

// Unwrap returns [ErrSchema].
func (e *Error) Unwrap() error { return ErrSchema }

// Violation is one place where a value does not match its schema. Path is the location in the value, such as
// items[2].name.
type Violation Problem

const maxViolations = 32

// maxPathRunes and maxMessageRunes are the maximum lengths of the texts of a violation.
const (
	maxPathRunes    = 2048
	maxMessageRunes = 8192
)

// ViolationError holds the violations of a value, sorted by path: at least one and at most 32.
type ViolationError struct {
	Violations []Violation
	// More is the number of violations left out. If there are thousands, it is a lower bound.
	More int
}

// Error returns the violations on one line, worded for a language model.
func (e *ViolationError) Error() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		lines[i] = at(v.Path, v.Message)
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "; ")
}

// Unwrap returns [ErrValue].
func (e *ViolationError) Unwrap() error { return ErrValue }

func at(path, message string) string {
	if path == "" {
		return message
	}
	return path + ": " + message
}

func schemaError(problems ...Problem) *Error {
	slices.SortStableFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return &Error{slices.Compact(problems)}
}

// violationError makes an error of violations, sorted, without repetitions and capped.
func violationError(violations ...Violation) *ViolationError {
	slices.SortFunc(violations, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	kept := slices.Compact(violations)
	more := max(0, len(kept)-maxViolations)
	kept = slices.Clone(kept[:len(kept)-more])
	for i := range kept {
		kept[i].Path = clipRunes(kept[i].Path, maxPathRunes)
		kept[i].Message = clipRunes(kept[i].Message, maxMessageRunes)
	}
	return &ViolationError{Violations: kept, More: more}
}
