package output

import (
	"errors"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// The ways in which a store refuses; match them with [errors.Is].
var (
	// ErrUnknown: nothing is kept by this reference.
	ErrUnknown = errors.New("unknown reference")
	// ErrRange: a page begins outside of the whole, or its length is negative.
	ErrRange = errors.New("outside of the text")
	// ErrBytes: a store's bound is negative.
	ErrBytes = errors.New("negative number of bytes")
)

// Error is a refusal. Its text can be shown to a model.
type Error struct {
	Reference string // empty where it is about none
	Detail    string // what to know beside Err; may be empty
	Err       error  // one of the above
}

const maxReferenceShown = 128

func (e *Error) Error() string {
	var text strings.Builder
	if e.Reference != "" {
		text.WriteString("reference " + strconv.Quote(tool.Shown(e.Reference, maxReferenceShown)) + ": ")
	}
	text.WriteString(e.Err.Error())
	if e.Detail != "" {
		text.WriteString(": " + e.Detail)
	}
	return text.String()
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }
