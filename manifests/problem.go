package manifests

import (
	"errors"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/internal/mistake"
)

// ErrInvalid is wrapped by every [*Error].
var ErrInvalid = errors.New("invalid manifest or policy")

// Problem is one thing that is wrong with a manifest or a policy.
type Problem struct {
	File string `json:"file"`
	// Line and Column count from 1, columns in characters.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path is the place in the document, such as limits.memory or tests[0].name. It is empty for the document as a whole.
	Path    string       `json:"path"`
	Kind    mistake.Kind `json:"kind"`
	Message string       `json:"message"` // the cause
	Fix     string       `json:"fix"`     // what to do; never empty
}

// problemAt returns a problem at a position, or at the start of the file for the zero position.
func problemAt(file string, at position, path string, kind mistake.Kind, message, fix string) Problem {
	return Problem{File: file, Line: max(at.line, 1), Column: max(at.column, 1), Path: path, Kind: kind, Message: message,
		Fix: fix}
}

// String returns the problem on one line.
func (p Problem) String() string {
	where := ""
	if p.File != "" {
		where = fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	}
	if p.Path != "" {
		where += p.Path + ": "
	}
	return where + p.Message + " (" + p.Fix + ")"
}

// Error holds the problems of a manifest or a policy in file order. There is at least one and at most 1,000.
type Error struct {
	Problems []Problem
	// Names are the names that an invalid manifest claims, as far as they can be read: the tool's name, then its aliases.
	// They are empty if the document does not have exactly one name. A registry reserves them, so that a broken manifest
	// does not free its name for another tool.
	Names []string
}

// Error returns the problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns [ErrInvalid].
func (e *Error) Unwrap() error { return ErrInvalid }
