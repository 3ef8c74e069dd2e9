package executor

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/executor/internal/pause"
)

var (
	// ErrInvalidOptions means that the options of an executor, a session, a subscription or a stream
	// are invalid.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrInvalidBatch means that a batch was refused before any of its calls was checked.
	ErrInvalidBatch = errors.New("invalid batch")
)

// Why a batch cannot be resumed, for errors.Is. The error names the call; one error reports all mistakes
// of a submission. Nothing has run, and the state can be tried again.
var (
	ErrInvalidState = pause.ErrInvalidState // it is damaged, or of another version
	ErrWrongSession = pause.ErrWrongSession // tenant or context values differ
	// ErrWrongAnswers means that a waiting call has no answer, more than one, or one of the wrong type, or that an
	// answer is for no waiting call, or for more than one.
	ErrWrongAnswers = pause.ErrWrongAnswers
	ErrNotApproved  = pause.ErrNotApproved // its fingerprint is missing or another
	ErrExpired      = pause.ErrExpired
	// ErrAlreadyResumed may also mean that the batch is being resumed now. Calls may have run.
	ErrAlreadyResumed = errors.New("the batch was already resumed")
)

// Error is a failure of the executor itself. Failures of calls are in their records.
type Error struct {
	Op  string // "new", "session", "subscribe", "stream", "execute", "resume" or "state"
	Err error  // wraps one of the package's errors, or the failure to make an id or a claim
}

func (e *Error) Error() string { return fmt.Sprintf("executor: %s: %v", e.Op, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// wrapError wraps an operation's error, if there is one. Call it with defer.
func wrapError(op string, err *error) {
	if *err != nil {
		*err = &Error{Op: op, Err: *err}
	}
}
