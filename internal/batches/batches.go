// Package batches stores paused batches, so that a later command can resume them. Each batch has
// its own file, in the user's state folder or at a path that the user chooses.
package batches

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/agefile"
)

// The errors of this package, for errors.Is. Other errors come from package folder or the operating system.
var (
	ErrNotFound  = errors.New("there is no such batch")
	ErrAmbiguous = errors.New("several batches match the id")
	ErrEnded     = errors.New("the batch was resumed and has ended")
	ErrOccupied  = errors.New("the file already exists")
	ErrDamaged   = errors.New("the file holds no paused batch")
	ErrEncrypted = errors.New("the batch is encrypted, and there is no key")
	ErrTooLarge  = errors.New("the batch is too large to keep")
)

// schema is the version of the file format.
const schema = "caisson-batch/v1"

// maxBytes is the maximum size of a batch's JSON: that of a state, and 4 KiB for the fields around it. MaxFileBytes is
// that of its file, which is checked before it is read.
const (
	maxBytes     = executor.MaxStateBytes + 4<<10
	MaxFileBytes = maxBytes + agefile.Overhead
)

// Batch is a paused batch as stored.
type Batch struct {
	// Dialect is the dialect of the calls, or empty.
	Dialect string
	State   executor.State
}

// wireBatch is the content of a file. Of a batch that has ended, only the id and the time are kept.
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
	if err == nil && len(content) > maxBytes {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrTooLarge, len(content))
	}
	return content, err
}

// decode decodes the untrusted content of a file.
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
		return Batch{}, fmt.Errorf("%w: its state is missing or belongs to another batch", ErrDamaged)
	}
	return Batch{Dialect: wire.Dialect, State: *wire.State}, nil
}
