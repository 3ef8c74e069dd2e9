// Package batches stores paused batches, so that a later command can resume them: each in a
// file of its own, in the user's folder for the state of programs or wherever the user says.
package batches

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/executor"
)

// What can go wrong, for errors.Is.
var (
	ErrNotFound  = errors.New("there is no such batch")
	ErrAmbiguous = errors.New("several batches have such an id")
	ErrEnded     = errors.New("the batch was resumed and has ended")
	ErrOccupied  = errors.New("the file is there already")
	ErrDamaged   = errors.New("the file holds no paused batch")
	ErrTooLarge  = errors.New("the batch is too large to keep")
)

// Error is a failure of one operation on a kept batch. It wraps one of the errors above or the
// operating system's.
type Error struct {
	Op   string // "keep", "find", "read" or "claim"
	Path string // the folder, or the file
	Err  error
}

// Error returns the operation, the path and the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// schema is the version of what a file holds.
const schema = "caisson-batch/v1"

// MaxFileBytes is how large the file of one batch may be: as a state may, and what stands around it.
// The size of a file is looked at before it is read.
const MaxFileBytes = executor.MaxStateBytes + 4<<10

// Batch is a paused batch, as it is stored.
type Batch struct {
	// Dialect is the one in which the calls came; empty for none.
	Dialect string
	State   executor.State
}

// wireBatch is what a file holds. Of a batch that has ended, nothing is left but its id.
type wireBatch struct {
	Schema  string          `json:"schema"`
	Batch   string          `json:"batch"`
	Dialect string          `json:"dialect,omitempty"`
	State   *executor.State `json:"state,omitempty"`
	Ended   *time.Time      `json:"ended,omitempty"`
}

func encode(wire wireBatch) ([]byte, error) {
	wire.Schema = schema
	content, err := json.Marshal(wire)
	if err == nil && len(content) > MaxFileBytes {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrTooLarge, len(content))
	}
	return content, err
}

// decode reads what a file holds, which may be anything.
func decode(content []byte) (Batch, error) {
	var version struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(content, &version); err != nil || version.Schema != schema {
		return Batch{}, fmt.Errorf("%w: it is not JSON with the schema %s", ErrDamaged, schema)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var wire wireBatch
	if err := decoder.Decode(&wire); err != nil {
		return Batch{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case wire.Ended != nil:
		return Batch{}, fmt.Errorf("%w, at %s", ErrEnded, wire.Ended.UTC().Format(time.RFC3339))
	case wire.State == nil || wire.State.ID() != wire.Batch:
		return Batch{}, fmt.Errorf("%w: its state is missing, or another batch's", ErrDamaged)
	}
	return Batch{Dialect: wire.Dialect, State: *wire.State}, nil
}
