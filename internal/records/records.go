// Package records keeps what calls came to in a folder of the user's, so that it can be
// looked at after the command that ran them has ended.
//
// A folder holds one file for each call, named by the call's id. Ids grow with time, so
// the order of the names is the order of the calls. Any number of processes may use a
// folder at once.
package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/tool"
)

// What a folder holds at most. When more is added, what is oldest goes.
const (
	MaxRecords = 500
	MaxBytes   = 64 << 20 // of all files together
)

// MinPrefix is how many characters of a call's id [Folder.Find] needs at least.
const MinPrefix = 8

// What can go wrong, for errors.Is.
var (
	ErrNotFound  = errors.New("there is no such record")
	ErrAmbiguous = errors.New("several records have such an id")
	ErrID        = errors.New("not a call's id, nor the beginning of one")
	ErrTooLarge  = errors.New("the record is too large to keep")
	ErrExposed   = folder.ErrExposed
	ErrDamaged   = errors.New("the file is not a record")
)

// Error is a failure of one operation on a folder. It wraps one of the errors above or
// the operating system's.
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
	Time     time.Time // when the call had ended
	Source   string    // the folder or manifest that the tool was loaded from; empty where there was no tool
	Manifest string    // the tool's manifest; empty where there was no tool
	Record   tool.Record
	// Whole is the result before parts of it were cut; nil where none was.
	Whole *tool.Result

	// wire is the record's JSON as it was kept. Reading it rounds times.
	wire json.RawMessage
}

type wireEntry struct {
	Time     time.Time       `json:"time"`
	Source   string          `json:"source"`
	Manifest string          `json:"manifest"`
	Record   json.RawMessage `json:"record"`
	Whole    *tool.Result    `json:"whole,omitempty"`
}

// MarshalJSON writes the entry with the record's wire form, byte for byte as it was kept.
func (e Entry) MarshalJSON() ([]byte, error) {
	wire, err := e.Wire()
	if err != nil {
		return nil, err
	}
	return json.Marshal(wireEntry{e.Time, e.Source, e.Manifest, wire, e.Whole})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var wire wireEntry
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*e = Entry{Time: wire.Time, Source: wire.Source, Manifest: wire.Manifest, Whole: wire.Whole, wire: wire.Record}
	return json.Unmarshal(wire.Record, &e.Record)
}

// Wire returns the record's JSON, byte for byte as it was kept.
func (e Entry) Wire() (json.RawMessage, error) {
	if e.wire != nil {
		return e.wire, nil
	}
	return json.Marshal(e.Record)
}

// Result returns what the call came to, in whole.
func (e Entry) Result() tool.Result {
	if e.Whole != nil {
		return *e.Whole
	}
	return e.Record.Result
}
