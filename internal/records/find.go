package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
)

// Find returns the record of a call by its id or a unique prefix of at least [MinPrefix]
// characters. The error wraps [ErrNotFound], [ErrAmbiguous], [ErrID], [ErrExposed], [ErrDamaged] or
// an error of the operating system.
func (f Folder) Find(id string) (Entry, error) {
	wanted := strings.ToLower(id)
	if len(wanted) < MinPrefix || !folder.IsID(wanted, true) {
		return Entry{}, &Error{"find", string(f), fmt.Errorf("%q: %w", id, ErrID)}
	}
	found, err := f.withPrefix(wanted)
	if err != nil {
		return Entry{}, err
	}
	switch len(found) {
	case 0:
		return Entry{}, &Error{"find", string(f), fmt.Errorf("%q: %w", id, ErrNotFound)}
	case 1:
		return f.read(found[0])
	}
	return Entry{}, &Error{"find", string(f), fmt.Errorf("%q: %w: %s", id, ErrAmbiguous, strings.Join(found[:min(len(found), 5)], ", "))}
}

// Newest returns the ids of at most n records, newest first. It returns none if the folder does not
// exist.
func (f Folder) Newest(n int) ([]string, error) {
	found, err := f.withPrefix("")
	return found[:min(n, len(found))], err
}

// MadeBy returns the calls that a call made directly, oldest first. It omits records that cannot be
// read, because they are damaged or were just removed.
func (f Folder) MadeBy(caller Entry) ([]Entry, error) {
	ids, err := f.withPrefix("")
	if err != nil {
		return nil, err
	}
	var made []Entry
	for _, id := range slices.Backward(ids) {
		if id <= caller.Record.CallID || madeAt(id).After(caller.Time) {
			continue
		}
		if entry, err := f.read(id); err == nil && entry.Record.Parent == caller.Record.CallID {
			made = append(made, entry)
		}
	}
	return made, nil
}

// madeAt returns the time when an id was made. A UUIDv7 begins with that time in milliseconds (RFC
// 9562, 5.7).
func madeAt(id string) time.Time {
	milliseconds, _ := strconv.ParseInt(id[:8]+id[9:13], 16, 64) // ids are made of hex digits
	return time.UnixMilli(milliseconds)
}

func (f Folder) withPrefix(prefix string) ([]string, error) {
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{"list", string(f), folder.Reason(err)}
	}
	files, err := folder.List(root)
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, &Error{"list", string(f), err}
	}
	var found []string
	for _, id := range idsOf(files) {
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	return found, nil
}

func (f Folder) read(id string) (Entry, error) {
	entry, err := f.readFile(id)
	if err != nil {
		return Entry{}, &Error{"find", filepath.Join(string(f), id+suffix), folder.Reason(err)}
	}
	return entry, nil
}

func (f Folder) readFile(id string) (entry Entry, err error) {
	root, err := f.open()
	if err != nil {
		return Entry{}, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	content, err := folder.Read(root, id+suffix, MaxBytes)
	switch {
	case errors.Is(err, folder.ErrIrregular), errors.Is(err, folder.ErrTooLarge):
		return Entry{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return Entry{}, err
	}
	if err := json.Unmarshal(content, &entry); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if entry.Record.CallID != id {
		return Entry{}, fmt.Errorf("%w: it holds the call %q", ErrDamaged, entry.Record.CallID)
	}
	return entry, nil
}
