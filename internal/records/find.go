package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
)

// Find returns the record of a call by its id or a unique prefix of at least [folder.MinPrefix]
// characters. The error wraps [ErrNotFound], [ErrAmbiguous], [ErrID], [ErrDamaged],
// [folder.ErrExposed] or an error of the operating system.
func (f Folder) Find(id string) (Entry, error) {
	if !folder.IsPrefix(id) {
		return Entry{}, f.failure("find", fmt.Errorf("%q: %w", id, ErrID))
	}
	found, err := f.Newest(id, 5)
	switch {
	case err != nil:
		return Entry{}, err
	case len(found) == 0:
		return Entry{}, f.failure("find", fmt.Errorf("%q: %w", id, ErrNotFound))
	case len(found) > 1:
		return Entry{}, f.failure("find", fmt.Errorf("%q: %w: %s", id, ErrAmbiguous, strings.Join(found, ", ")))
	}
	return f.read(found[0])
}

// maxListed bounds the records that [Folder.Of] returns, in bytes: one record can have megabytes of arguments.
const maxListed = 4 << 20

// Of returns the newest entries of a tenant, newest first: n at most, and no more once their records have over 4 MiB.
// It omits records that cannot be read, because they are damaged or were just removed. tenants has the tenants of ids
// that are known, and Of returns those of all ids that it has seen, so that a program that keeps it reads each record
// of other tenants once.
func (f Folder) Of(tenant string, n int, tenants map[string]string) ([]Entry, map[string]string, error) {
	ids, err := f.Newest("", math.MaxInt)
	if err != nil {
		return nil, nil, err
	}
	var found []Entry
	bytes := 0
	seen := make(map[string]string, len(ids))
	for _, id := range ids {
		owner, known := tenants[id]
		if known {
			seen[id] = owner
		}
		if len(found) >= n || bytes > maxListed || known && owner != tenant {
			continue
		}
		entry, err := f.read(id)
		if err != nil {
			continue
		}
		if seen[id] = entry.Tenant; entry.Tenant == tenant {
			found = append(found, entry)
			bytes += len(entry.Wire)
		}
	}
	return found, seen, nil
}

// Newest returns at most n ids of records that start with a text, newest first. It returns none if
// the folder does not exist.
func (f Folder) Newest(start string, n int) ([]string, error) {
	found, err := folder.Find(string(f), start)
	return found[:min(n, len(found))], f.failure("list", folder.Reason(err))
}

// MadeBy returns the calls that a call made directly, oldest first. It omits records that cannot be
// read, because they are damaged or were just removed.
func (f Folder) MadeBy(caller Entry) ([]Entry, error) {
	ids, err := f.Newest("", math.MaxInt)
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

func (f Folder) read(id string) (entry Entry, err error) {
	defer func() {
		if err != nil {
			err = f.failure("find", fmt.Errorf("%s: %w", id, folder.Reason(err)))
		}
	}()
	root, err := folder.Open(string(f))
	if err != nil {
		return entry, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	content, err := folder.Read(root, id+folder.Suffix, MaxBytes)
	if errors.Is(err, folder.ErrIrregular) || errors.Is(err, folder.ErrTooLarge) {
		return entry, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return entry, err
	}
	if err := errors.Join(json.Unmarshal(content, &entry), json.Unmarshal(entry.Wire, &entry.Record)); err != nil {
		return entry, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if entry.Record.CallID != id {
		return entry, fmt.Errorf("%w: it holds the call %q", ErrDamaged, entry.Record.CallID)
	}
	return entry, nil
}
