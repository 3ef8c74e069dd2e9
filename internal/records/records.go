// Package records keeps the records of calls in a folder of the user, so that they can be inspected
// after the command that ran the calls has ended.
//
// A folder holds one file for each call, named by the call's id. Ids grow with time, so the order
// of the names is the order of the calls. Any number of processes may use a folder concurrently.
package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/tool"
)

// The limits of a folder. Beyond them, the oldest records are removed.
const (
	MaxRecords = 500
	MaxBytes   = 64 << 20 // of all files together
)

// MinPrefix is the minimum number of characters of a call's id that [Folder.Find] accepts.
const MinPrefix = 8

// The errors of this package, for errors.Is.
var (
	ErrNotFound  = errors.New("there is no such record")
	ErrAmbiguous = errors.New("several records match the id")
	ErrID        = errors.New("not a call id or a prefix of one")
	ErrTooLarge  = errors.New("the record is too large to keep")
	ErrExposed   = folder.ErrExposed
	ErrDamaged   = errors.New("the file is not a record")
)

// Error is the failure of an operation on a folder. It wraps one of the errors above or an error of
// the operating system.
type Error struct {
	Op   string // "keep", "find" or "list"
	Path string // the folder, or a file in it
	Err  error
}

// Error returns the operation, the path and the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Entry is one kept call.
type Entry struct {
	Time     time.Time // when the call ended
	Source   string    // the folder or manifest that the tool was loaded from; empty if there was no tool
	Manifest string    // the tool's manifest; empty if there was no tool
	Record   tool.Record
	// Whole is the result before parts of it were cut, or nil if nothing was cut.
	Whole *tool.Result

	// wire is the record's JSON as kept. Decoding it would round times.
	wire json.RawMessage
}

type wireEntry struct {
	Time     time.Time       `json:"time"`
	Source   string          `json:"source"`
	Manifest string          `json:"manifest"`
	Record   json.RawMessage `json:"record"`
	Whole    *tool.Result    `json:"whole,omitempty"`
}

// MarshalJSON returns the entry's JSON. It contains the record's JSON byte for byte as kept.
func (e Entry) MarshalJSON() ([]byte, error) {
	wire, err := e.Wire()
	if err != nil {
		return nil, err
	}
	return json.Marshal(wireEntry{e.Time, e.Source, e.Manifest, wire, e.Whole})
}

// UnmarshalJSON decodes the output of [Entry.MarshalJSON].
func (e *Entry) UnmarshalJSON(data []byte) error {
	var wire wireEntry
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*e = Entry{Time: wire.Time, Source: wire.Source, Manifest: wire.Manifest, Whole: wire.Whole, wire: wire.Record}
	return json.Unmarshal(wire.Record, &e.Record)
}

// Wire returns the record's JSON, byte for byte as kept.
func (e Entry) Wire() (json.RawMessage, error) {
	if e.wire != nil {
		return e.wire, nil
	}
	return json.Marshal(e.Record)
}

// Result returns the whole result of the call.
func (e Entry) Result() tool.Result {
	if e.Whole != nil {
		return *e.Whole
	}
	return e.Record.Result
}
