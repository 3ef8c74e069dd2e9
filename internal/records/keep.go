package records

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/caisson-run/caisson/internal/folder"
)

// pruned is the number of records after which a [Keeper] prunes its folder. In between, the folder
// may exceed its limit by as many records.
const pruned = 64

// Keeper keeps the records of calls as they end. Create it with [Folder.Open]. It must be closed.
// It is safe for concurrent use.
type Keeper struct {
	folder Folder
	root   *os.Root

	mu      sync.Mutex
	kept    int
	tenants map[string]string // of calls, by id, as far as they are known
	shared  bool              // whether a tenant's call was kept, and so others' may be there
}

// Open returns a keeper for the folder, and creates the folder if necessary.
func (f Folder) Open() (*Keeper, error) {
	root, err := folder.Make(string(f))
	if err != nil {
		return nil, f.failure("keep", folder.Reason(err))
	}
	return &Keeper{folder: f, root: root, tenants: map[string]string{}}, nil
}

// Keep writes one entry. It writes atomically: concurrent readers see the whole record or none.
func (k *Keeper) Keep(entry Entry) error {
	err := write(k.root, entry)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tenants[entry.Record.CallID] = entry.Tenant
	k.shared = k.shared || entry.Tenant != ""
	if k.kept++; k.kept%pruned == 0 {
		err = errors.Join(err, k.prune())
	}
	return k.folder.failure("keep", err)
}

// Close prunes the folder and closes the keeper.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.folder.failure("keep", errors.Join(k.prune(), k.root.Close()))
}

func write(root *os.Root, entry Entry) error {
	id := entry.Record.CallID
	if !folder.IsID(id) {
		return fmt.Errorf("%q: %w", id, ErrID)
	}
	wire, err := json.Marshal(entry.Record)
	if err != nil {
		return err
	}
	entry.Wire = wire
	content, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	if len(content) > MaxBytes {
		return fmt.Errorf("%s: %w: it has %d bytes", id, ErrTooLarge, len(content))
	}
	return folder.Write(root, id+folder.Suffix, content)
}

// prune removes records until the folder is within its limits. It also removes abandoned drafts. The caller must hold k.mu.
func (k *Keeper) prune() error {
	kept, err := folder.Look(k.root)
	ids := folder.IDs(maps.Keys(kept))
	if k.shared && isOver(kept) {
		ids = k.fairly(ids, kept)
	}
	return errors.Join(err, folder.Trim(k.root, ids, kept, MaxRecords, MaxBytes))
}

// isOver reports whether files are beyond the limits of a folder.
func isOver(kept map[string]fs.FileInfo) bool {
	bytes := int64(0)
	for _, file := range kept {
		bytes += file.Size()
	}
	return len(kept) > MaxRecords || bytes > MaxBytes
}

// fairly orders ids, which are given newest first, so that no tenant's records push out another's that has fewer: a record comes
// before another if, together with the newer ones of its tenant, it takes less of the limits. The caller must hold k.mu.
func (k *Keeper) fairly(ids []string, kept map[string]fs.FileInfo) []string {
	type taken struct{ records, bytes float64 }
	by, shares := map[string]taken{}, make(map[string]float64, len(ids))
	known := make(map[string]string, len(ids))
	for _, id := range ids {
		tenant, ok := k.tenants[id]
		if !ok { // another process has kept it, or an earlier one
			if entry, err := k.folder.read(id); err == nil { // what cannot be read is nobody's
				tenant = entry.Tenant
			}
		}
		known[id] = tenant
		t := by[tenant]
		t.records++
		t.bytes += float64(kept[id+folder.Suffix].Size())
		by[tenant] = t
		shares[id] = max(t.records/MaxRecords, t.bytes/MaxBytes)
	}
	k.tenants = known
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(shares[a], shares[b]) })
	return ids
}
