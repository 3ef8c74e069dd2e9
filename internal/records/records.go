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
	"path/filepath"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// The limits of a folder. Beyond them, the oldest records are removed.
const (
	MaxRecords = 500
	MaxBytes   = 64 << 20 // of all files together
)

// The errors of this package, for errors.Is. Other errors wrap those of package folder or of the operating system.
var (
	ErrNotFound  = errors.New("there is no such record")
	ErrAmbiguous = errors.New("several records match the id")
	ErrID        = errors.New("not a call id or a prefix of one")
	ErrTooLarge  = errors.New("the record is too large to keep")
	ErrDamaged   = errors.New("the file is not a record")
)

// Folder is the path of a folder of records. The folder need not exist.
type Folder string

// In returns the folder of records in the state folder.
func In(state string) Folder { return Folder(filepath.Join(state, "records")) }

// failure adds the operation and the folder to an error.
func (f Folder) failure(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, f, err)
}

// Entry is one kept call.
type Entry struct {
	Tenant string    `json:"tenant"` // on whose behalf the call was made; first in the file, for Folder.tenant
	Time   time.Time `json:"time"`   // when the call ended
	// Source is the folder or manifest that the tool was loaded from; empty if there was no tool.
	Source   string      `json:"source"`
	Manifest string      `json:"manifest"` // the tool's manifest; empty if there was no tool
	Record   tool.Record `json:"-"`
	// Cause is the reason for the host's failure; empty if the host did not fail. The record omits it, since other people
	// read the record.
	Cause string `json:"cause,omitempty"`
	// Wire is the record's JSON, byte for byte as kept. Decoding it rounds times. It is set when an
	// entry is found.
	Wire json.RawMessage `json:"record"`
	// Whole is the result before parts of it were cut, or nil if nothing was cut.
	Whole *tool.Result `json:"whole,omitempty"`
}

// Result returns the whole result of the call.
func (e Entry) Result() tool.Result {
	if e.Whole != nil {
		return *e.Whole
	}
	return e.Record.Result
}
