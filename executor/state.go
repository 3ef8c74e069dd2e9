package executor

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// State is a batch that waits: what [Executor.Resume] needs to go on with it, in this process or
// another. It is a value that can be stored, as JSON or in a column. It holds the calls with their
// arguments and the results so far, so keep it as safe as these, where only the host reads it; it
// holds no permission of any kind. It tells nobody the session's tenant and context values, but whoever
// reads it can find out whether a guess at all of these is right.
// The zero value is no batch's. It is safe for concurrent use.
type State struct{ batch *storedBatch }

// MaxStateBytes is how long a state's JSON may be. Reading one costs up to some thirty times that in
// memory that is allocated on the way, which is why longer ones are refused before anything of them is
// read. A batch that would become longer is not let wait.
const MaxStateBytes = 16 << 20

// storedBatch is a batch that waits. Nobody changes it.
type storedBatch struct {
	id       string
	revision int    // 1 for the first pause of the batch
	session  string // see [Session.digest]
	expires  time.Time
	totals   tool.Totals // of the calls that have ended
	calls    []storedCall
}

// storedCall is a call of a batch that waits. It has ended, or waits itself, or neither.
type storedCall struct {
	callID string
	call   tool.Call
	record *tool.Record // of a call that has ended
	final  bool         // as in [call]
	action *tool.Action // what a call waits for
}

// state returns what a batch that has paused can be resumed with.
func (b *batch) state(calls []*call) State {
	stored := &storedBatch{
		id: b.id, revision: b.revision + 1, session: b.session.digest(b.id), totals: b.totals,
		expires: time.Now().Add(b.executor.options.Pause.Expire).UTC().Round(0), calls: make([]storedCall, len(calls)),
	}
	for i, c := range calls {
		s := storedCall{callID: c.record.CallID, call: c.record.Call}
		switch {
		case c.phase == phaseEnded:
			record := ownRecord(&c.record)
			s.record, s.final = &record, c.final
		case c.phase == phaseAnnounced:
			action := c.wait.action
			s.action = &action
		}
		stored.calls[i] = s
	}
	return State{stored}
}

// ownRecord returns a record that can be changed without changing the other: reports and states are
// both their readers'.
func ownRecord(r *tool.Record) tool.Record {
	own := *r
	own.Result = cloned(r.Result)
	own.Repairs, own.Cuts = slices.Clone(r.Repairs), slices.Clone(r.Cuts)
	own.Denials, own.HostCalls = slices.Clone(r.Denials), slices.Clone(r.HostCalls)
	return own
}

// shown is what a call waits for, with the call that would run.
func (s *storedCall) shown() tool.Action {
	action := *s.action
	action.CallID, action.Call = s.callID, s.call
	action.Call.ID = or(action.Call.ID, s.callID)
	action.Arguments = bytes.Clone(action.Arguments)
	action.Decisions, action.Callees = slices.Clone(action.Decisions), slices.Clone(action.Callees)
	return action
}

func (b *storedBatch) pending() []tool.Action {
	pending := []tool.Action{}
	for i := range b.calls {
		if b.calls[i].action != nil {
			pending = append(pending, b.calls[i].shown())
		}
	}
	return pending
}

// ID returns the batch's id.
func (s State) ID() string {
	if s.batch == nil {
		return ""
	}
	return s.batch.id
}

// Pending returns what the batch waits for, in the order of the calls. It is never nil.
func (s State) Pending() []tool.Action {
	if s.batch == nil {
		return []tool.Action{}
	}
	return s.batch.pending()
}

// Expires returns until when the batch can be resumed.
func (s State) Expires() time.Time {
	if s.batch == nil {
		return time.Time{}
	}
	return s.batch.expires
}

// MarshalJSON writes the state. That of no batch is null. It fails for one that is longer than
// [MaxStateBytes].
func (s State) MarshalJSON() ([]byte, error) {
	if s.batch == nil {
		return []byte("null"), nil
	}
	text, err := s.batch.encode()
	if err != nil {
		return nil, &Error{Op: "state", Err: err}
	}
	return text, nil
}

// UnmarshalJSON reads a state; null is that of no batch. It fails with [ErrInvalidState], and leaves
// the state as it was; the document may be anything. One that is longer than [MaxStateBytes] is not
// looked at; inside of another document, whoever reads that bounds it.
func (s *State) UnmarshalJSON(document []byte) error {
	if err := checkSize(len(document)); err != nil {
		return err
	}
	if string(bytes.TrimSpace(document)) == "null" {
		*s = State{}
		return nil
	}
	stored, err := decodeState(document)
	if err != nil {
		return &Error{Op: "state", Err: fmt.Errorf("%w: %w", ErrInvalidState, err)}
	}
	*s = State{stored}
	return nil
}

func checkSize(bytes int) error {
	if bytes > MaxStateBytes {
		return &Error{Op: "state", Err: fmt.Errorf("%w: it has %d bytes; at most %d are read", ErrInvalidState, bytes, MaxStateBytes)}
	}
	return nil
}

// Value returns the state's JSON as text; NULL for no batch's.
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

// Scan reads the state's JSON from text or bytes; NULL is no batch's. It fails as UnmarshalJSON does.
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
		return &Error{Op: "state", Err: fmt.Errorf("%w: the column holds a %T; want text or bytes with JSON", ErrInvalidState, column)}
	}
}
