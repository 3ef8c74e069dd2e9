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
	"github.com/caisson-run/caisson/tool"
)

// pruned is the number of records after which a [Keeper] prunes its folder. In between, the folder may exceed its limit
// by as many records, and by those that are kept while it is pruned.
const pruned = 64

// Keeper keeps the records of calls as they end. Create it with [Folder.Open]. It must be closed.
// It is safe for concurrent use.
type Keeper struct {
	folder Folder
	root   *os.Root

	pruning sync.Mutex // held while the folder is pruned, for which no other record waits

	mu      sync.Mutex
	added   int               // since the folder was last pruned
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
	if k.note(entry) && k.pruning.TryLock() {
		err = errors.Join(err, k.prune())
		k.pruning.Unlock()
	}
	return k.folder.failure("keep", err)
}

// note notes whose an entry is, and reports whether the folder should be pruned.
func (k *Keeper) note(entry Entry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tenants[entry.Record.CallID] = entry.Tenant
	k.shared = k.shared || entry.Tenant != ""
	k.added++
	return k.added >= pruned
}

// Close prunes the folder and closes the keeper.
func (k *Keeper) Close() error {
	k.pruning.Lock()
	defer k.pruning.Unlock()
	return k.folder.failure("keep", errors.Join(k.prune(), k.root.Close()))
}

func write(root *os.Root, entry Entry) error {
	id := entry.Record.CallID
	if !folder.IsID(id) {
		return fmt.Errorf("%q: %w", id, ErrID)
	}
	content, err := json.Marshal(struct {
		Entry
		Record tool.Record `json:"record"` // in place of Wire, for which it would be encoded twice
	}{entry, entry.Record})
	if err != nil {
		return err
	}
	if len(content) > MaxBytes {
		return fmt.Errorf("%s: %w: it has %d bytes", id, ErrTooLarge, len(content))
	}
	return folder.Write(root, id+folder.Suffix, content)
}

// prune removes records until the folder is within its limits. It also removes abandoned drafts. The caller must hold
// k.pruning.
func (k *Keeper) prune() error {
	k.mu.Lock()
	k.added = 0
	shared, tenants := k.shared, maps.Clone(k.tenants)
	k.mu.Unlock()
	kept, err := folder.Look(k.root)
	ids := folder.IDs(maps.Keys(kept))
	if shared && isOver(kept) {
		k.complete(tenants, ids)
		fairly(ids, kept, tenants)
	}
	return errors.Join(err, folder.Trim(k.root, ids, kept, MaxRecords, MaxBytes))
}

// complete reads the tenants of records that another process has kept, or an earlier one, and forgets those of records
// that are no longer there.
func (k *Keeper) complete(tenants map[string]string, ids []string) {
	there := make(map[string]bool, len(ids))
	for _, id := range ids {
		there[id] = true
		if _, ok := tenants[id]; !ok {
			tenants[id] = "" // what cannot be read is nobody's
			if entry, err := k.folder.read(id); err == nil {
				tenants[id] = entry.Tenant
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, tenant := range tenants {
		if there[id] {
			k.tenants[id] = tenant
		} else {
			delete(k.tenants, id)
		}
	}
}

// isOver reports whether files are beyond the limits of a folder.
func isOver(kept map[string]fs.FileInfo) bool {
	bytes := int64(0)
	for _, file := range kept {
		bytes += file.Size()
	}
	return len(kept) > MaxRecords || bytes > MaxBytes
}

// fairly orders ids, which are given newest first, so that no tenant's records push out another's that has fewer: a
// record comes before another if, together with the newer ones of its tenant, it takes less of the limits.
func fairly(ids []string, kept map[string]fs.FileInfo, tenants map[string]string) {
	type taken struct{ records, bytes float64 }
	by, shares := map[string]taken{}, make(map[string]float64, len(ids))
	for _, id := range ids {
		t := by[tenants[id]]
		t.records++
		t.bytes += float64(kept[id+folder.Suffix].Size())
		by[tenants[id]] = t
		shares[id] = max(t.records/MaxRecords, t.bytes/MaxBytes)
	}
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(shares[a], shares[b]) })
}
