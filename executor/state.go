package executor

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/tool"
)

// State is a paused batch, which [Executor.Resume] resumes in this process or another. It can be stored
// as JSON or in a database column. It holds the calls with their arguments and the results so
// far, so protect it as you protect these; it grants nothing. It does not reveal the session's tenant and
// context values, but a reader can verify a guess at all of them together.
// The zero value belongs to no batch. It is safe for concurrent use.
type State struct {
	batch *pause.Batch
	home  *pause.Home // nil if the state was read
}

// MaxStateBytes bounds a state's JSON. Reading a state may allocate about thirty times its size, so longer
// ones are refused unread. A batch whose state would be longer does not pause.
const MaxStateBytes = 16 << 20

func (b *batch) state(calls []*call) State {
	stored := &pause.Batch{
		Version: pause.Version, ID: b.id, Revision: b.revision + 1, Session: b.session.digest(b.id), Totals: b.totals,
		Expires: time.Now().Add(b.executor.options.Pause.Expire).UTC().Round(0), Calls: make([]pause.Call, len(calls)),
	}
	for i, c := range calls {
		s := c.stored()
		if c.phase == phaseWaiting {
			s.Waits = nil // it was not announced
		}
		stored.Calls[i] = s
	}
	return State{stored, new(pause.Home)}
}

// ID returns the batch's id.
func (s State) ID() string { return s.stored().ID }

// stored returns the batch, or an empty one for the zero value.
func (s State) stored() *pause.Batch { return cmp.Or(s.batch, &pause.Batch{}) }

// Pending returns the actions that the batch waits for, in the order of the calls. It is never nil.
func (s State) Pending() []tool.Action { return s.stored().Pending() }

// Expires returns until when the batch can be resumed.
func (s State) Expires() time.Time { return s.stored().Expires }

// MarshalJSON writes the state, and null for the zero value. It fails for one that is longer than
// [MaxStateBytes].
func (s State) MarshalJSON() ([]byte, error) {
	if s.batch == nil {
		return []byte("null"), nil
	}
	if s.home != nil {
		s.home.Write()
	}
	text, err := json.Marshal(s.batch)
	if err == nil && len(text) > MaxStateBytes {
		err = fmt.Errorf("the state has %d bytes; at most %d can be stored", len(text), MaxStateBytes)
	}
	if err != nil {
		return nil, &Error{Op: "state", Err: err}
	}
	return text, nil
}

// UnmarshalJSON reads a state, and the zero value for null. The document need not be trusted. On failure, with
// [ErrInvalidState], the state is unchanged. A document longer than [MaxStateBytes] is refused
// unread; the reader of an enclosing document has to bound that itself.
func (s *State) UnmarshalJSON(document []byte) error {
	if err := checkSize(len(document)); err != nil {
		return err
	}
	if string(bytes.TrimSpace(document)) == "null" {
		*s = State{}
		return nil
	}
	stored, err := pause.Read(document)
	if err != nil {
		return &Error{Op: "state", Err: err}
	}
	*s = State{batch: stored}
	return nil
}

func checkSize(bytes int) error {
	if bytes > MaxStateBytes {
		return &Error{Op: "state",
			Err: fmt.Errorf("%w: it has %d bytes; at most %d are read", ErrInvalidState, bytes, MaxStateBytes)}
	}
	return nil
}

// Value returns the state's JSON as text, and NULL for the zero value.
func (s State) Value() (driver.Value, error) {
	if s.batch == nil {
		return nil, nil
	}
	text, err := s.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return string(text), nil
}

// Scan reads the state's JSON from text or bytes, and the zero value from NULL. It fails as UnmarshalJSON does.
func (s *State) Scan(column any) error {
	switch column := column.(type) {
	case nil:
		*s = State{}
		return nil
	case string:
		if err := checkSize(len(column)); err != nil { // before it is copied
			return err
		}
		return s.UnmarshalJSON([]byte(column))
	case []byte:
		return s.UnmarshalJSON(column)
	default:
		return &Error{Op: "state",
			Err: fmt.Errorf("%w: the column holds a %T; want text or bytes with JSON", ErrInvalidState, column)}
	}
}

const (
	// maxWaitingBytes bounds the calls of a batch in a state. The rest is for their results.
	maxWaitingBytes = MaxStateBytes / 2
	// maxCallsBytes bounds all calls of a batch in a state, and leaves enough for the state's other members.
	maxCallsBytes = MaxStateBytes - 4<<10
)

const tooLong = "the batch is too large to pause for an answer or an approval; make fewer or shorter calls at a time"

// refuseTooLong refuses the waiting calls of a batch whose calls take more than limit bytes in a state's JSON, as
// encoding/json writes it inside another document: a model must not be able to produce a state that cannot be stored.
// Calls that have ended count if all is set. It reports whether it refused any.
func (b *batch) refuseTooLong(ctx context.Context, calls []*call, limit int, all bool) bool {
	if !slices.ContainsFunc(calls, (*call).waits) {
		return false
	}
	size := 0
	for _, c := range calls {
		if size > limit {
			break
		}
		if c.phase == phaseEnded && !all {
			continue
		}
		text, err := json.Marshal(c.stored())
		if size += len(text) + 1; err != nil { // and a comma
			size = limit + 1
		}
	}
	if size <= limit {
		return false
	}
	for _, c := range calls {
		if c.waits() {
			b.abandonWait(c)
			c.refuse(tool.Busy, tooLong)
		}
	}
	b.executor.log.WarnContext(ctx, "batch is too large to pause", "batch", b.id, "session", b.session.id)
	return true
}

// stored returns the call in the form in which a state holds it.
func (c *call) stored() pause.Call {
	if c.phase == phaseEnded {
		return pause.Ended(&c.record, c.final)
	}
	var waits *tool.Action
	if c.waits() {
		waits = &c.wait.action
	}
	return pause.Open(c.record.CallID, c.record.Call, waits)
}
