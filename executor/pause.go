package executor

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// Status says how far a batch has come.
type Status string

// The statuses.
const (
	Completed      Status = "completed"       // all of its calls have ended
	RequiresAction Status = "requires_action" // it waits for answers or approvals: see [Executor.Resume]
)

// Why a batch cannot be resumed, for errors.Is. The error says which call it is about; one error
// has all mistakes of a submission. Nothing has been run then, and the state can be tried again.
var (
	ErrInvalidState  = errors.New("invalid state")                   // it is damaged, or another version's
	ErrWrongSession  = errors.New("another session's")               // tenant or context values differ
	ErrUnknownCall   = errors.New("no call waits under this id")     // or more than one has it
	ErrMissingAnswer = errors.New("a call that waits has no answer") // each needs one
	ErrDoubledAnswer = errors.New("a call has more than one answer")
	ErrWrongAnswer   = errors.New("the answer does not fit what is waited for") // as an output where an approval is needed
	ErrNotApproved   = errors.New("the approval is for something else")         // its fingerprint is missing or another
	ErrExpired       = errors.New("the batch no longer waits: its time was up")
	// ErrAlreadyResumed may also mean that the batch is being resumed. Some of what waited may have run.
	ErrAlreadyResumed = errors.New("the batch no longer waits: it was resumed")
)

// Pause says how long batches wait. The zero value is the safe default.
type Pause struct {
	// Expire is for how long a state can be resumed. Zero means 24 hours. All processes that share
	// states should have the same.
	Expire time.Duration
	// Claim makes sure that a state is resumed once, among all processes that share it. Nil: each
	// executor sees to it for itself.
	Claim Claimer
}

// Claimer takes states for being resumed, as a table with a unique key does. It must be safe for
// concurrent use.
type Claimer interface {
	// Claim takes the state with this key, which is opaque and below 128 bytes, until this time,
	// after which no copy of it is taken. It returns false where it was taken before. An error, or a
	// panic, means that it was not taken.
	Claim(ctx context.Context, key string, expires time.Time) (bool, error)
}

// Resumption goes on with a batch that required action.
type Resumption struct {
	State State
	// Session is whose batch it is: of the same tenant and with the same context values as the one
	// that it began in. Nil stands for one of the batch's own, with neither.
	Session *Session
	// Outputs and Approvals answer every action of the state.
	Outputs   []tool.Answer
	Approvals []tool.Approval
	// Timeout, Parallel, Files, Trace and Stream are as in [Batch].
	Timeout  time.Duration
	Parallel int
	Files    []tool.File
	Trace    string
	Stream   *Stream
}
