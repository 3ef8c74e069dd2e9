package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
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
	root, err := folder.Open(string(f))
	if err != nil {
		return Entry{}, f.failure("find", fmt.Errorf("%s: %w", found[0], folder.Reason(err)))
	}
	defer func() { _ = root.Close() }()
	return f.read(root, found[0])
}

// maxListed bounds the records that [Folder.Of] returns, in bytes: one record can have megabytes of arguments.
const maxListed = 4 << 20

// Of returns the newest entries of a tenant, newest first: n at most, and no more once their records have over 4 MiB.
// It omits records that cannot be read, because they are damaged or were just removed. tenants has the tenants of ids
// that are known, and Of returns those of all ids that it has seen, so that a program that keeps it looks at each
// record of other tenants once. Of records of other tenants, it reads no more than whose they are. It ends with ctx.
func (f Folder) Of(
	ctx context.Context, tenant string, n int, tenants map[string]string,
) (found []Entry, seen map[string]string, err error) {
	ids, root, err := f.open()
	if root == nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	size := 0
	seen = make(map[string]string, len(ids))
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, nil, f.failure("list", err)
		}
		owner, known := tenants[id]
		full := len(found) >= n || size > maxListed
		if !known && !full {
			owner, err = f.tenant(root, id)
			known = err == nil
		}
		if known {
			seen[id] = owner
		}
		if full || !known || owner != tenant {
			continue
		}
		if entry, err := f.read(root, id); err == nil && entry.Tenant == tenant {
			found = append(found, entry)
			size += len(entry.Wire)
		}
	}
	return found, seen, nil
}

// open returns the ids of all records, newest first, and the folder, which is nil if it does not exist. The caller must
// close it.
func (f Folder) open() ([]string, *os.Root, error) {
	ids, err := f.Newest("", math.MaxInt)
	if err != nil || len(ids) == 0 {
		return nil, nil, err
	}
	root, err := folder.Open(string(f))
	return ids, root, f.failure("list", folder.Reason(err))
}

// Newest returns at most n ids of records that start with a text, newest first. It returns none if
// the folder does not exist.
func (f Folder) Newest(start string, n int) ([]string, error) {
	found, err := folder.Find(string(f), start)
	return found[:min(n, len(found))], f.failure("list", folder.Reason(err))
}

// MadeBy returns the calls that a call made directly, for the same tenant, oldest first. It omits
// records that cannot be read, because they are damaged or were just removed. It ends with ctx.
func (f Folder) MadeBy(ctx context.Context, caller Entry) ([]Entry, error) {
	ids, root, err := f.open()
	if root == nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	var made []Entry
	for _, id := range slices.Backward(ids) {
		if err := ctx.Err(); err != nil {
			return nil, f.failure("list", err)
		}
		if id <= caller.Record.CallID || madeAt(id).After(caller.Time) {
			continue
		}
		if tenant, err := f.tenant(root, id); err != nil || tenant != caller.Tenant {
			continue
		}
		if entry, err := f.read(root, id); err == nil && entry.Record.Parent == caller.Record.CallID {
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

// maxHead is the number of bytes of a record that are read to find its tenant, whose name is short.
const maxHead = 1 << 10

// tenant returns whose a record is, without reading the rest if the record begins with it, as all do that a [Keeper] of
// this version has kept.
func (f Folder) tenant(root *os.Root, id string) (string, error) {
	head, err := folder.ReadStart(root, id+folder.Suffix, maxHead)
	if err != nil {
		return "", f.failure("find", fmt.Errorf("%s: %w", id, folder.Reason(err)))
	}
	if rest, ok := bytes.CutPrefix(head, []byte(`{"tenant":`)); ok {
		var tenant string
		if json.NewDecoder(bytes.NewReader(rest)).Decode(&tenant) == nil {
			return tenant, nil
		}
	}
	entry, err := f.read(root, id)
	return entry.Tenant, err
}

func (f Folder) read(root *os.Root, id string) (entry Entry, err error) {
	defer func() {
		if err != nil {
			err = f.failure("find", fmt.Errorf("%s: %w", id, folder.Reason(err)))
		}
	}()
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
