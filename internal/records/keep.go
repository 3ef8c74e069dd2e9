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
	"strings"
	"sync"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/tool"
)

// A [Keeper] prunes its folder after so many records, or records with so many bytes. In between, the folder may exceed
// its limits by as much, by the last record, and by those that are kept while it is pruned.
const (
	pruned      = 64
	prunedBytes = 16 << 20
)

// Keeper keeps the records of calls as they end. Create it with [Folder.Open]. It must be closed.
// It is safe for concurrent use.
type Keeper struct {
	folder Folder
	root   *os.Root

	pruning sync.Mutex        // held while the folder is pruned, for which no other record waits
	tenants map[string]string // of the calls that were there when it was last pruned, by id, as far as they are known

	mu     sync.Mutex
	added  int  // since the folder was last pruned
	bytes  int  // of those
	shared bool // whether a tenant's call was kept, and so others' may be there
}

// Open returns a keeper for the folder, and creates the folder if necessary.
func (f Folder) Open() (*Keeper, error) {
	root, err := folder.Make(string(f))
	if err != nil {
		return nil, f.failure("keep", folder.Reason(err))
	}
	return &Keeper{folder: f, root: root}, nil
}

// Keep writes one entry. It writes atomically: concurrent readers see the whole record or none. If a text of the call
// is longer than arguments may be, Keep keeps its start.
func (k *Keeper) Keep(entry Entry) error {
	bytes, err := write(k.root, entry)
	if k.note(entry.Tenant, bytes) && k.pruning.TryLock() {
		err = errors.Join(err, k.prune())
		k.pruning.Unlock()
	}
	return k.folder.failure("keep", err)
}

// note counts a record of a tenant, and reports whether the folder should be pruned.
func (k *Keeper) note(tenant string, bytes int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shared = k.shared || tenant != ""
	k.added++
	k.bytes += bytes
	return k.added >= pruned || k.bytes >= prunedBytes
}

// Close prunes the folder and closes the keeper.
func (k *Keeper) Close() error {
	k.pruning.Lock()
	defer k.pruning.Unlock()
	return k.folder.failure("keep", errors.Join(k.prune(), k.root.Close()))
}

// write writes an entry, and returns its bytes.
func write(root *os.Root, entry Entry) (bytes int, err error) {
	id := entry.Record.CallID
	if !folder.IsID(id) {
		return 0, fmt.Errorf("%q: %w", id, ErrID)
	}
	call := &entry.Record.Call
	for _, text := range []*string{&call.ID, &call.Type, &call.Function.Name, &call.Function.Arguments, &call.Signature} {
		if len(*text) > tool.MaxArgumentsBytes {
			*text = strings.ToValidUTF8((*text)[:tool.MaxArgumentsBytes], "") + "…"
		}
	}
	content, err := json.Marshal(struct {
		Entry
		Record tool.Record `json:"record"` // in place of Wire, for which it would be encoded twice
	}{entry, entry.Record})
	if err != nil {
		return 0, err
	}
	if len(content) > MaxBytes {
		return 0, fmt.Errorf("%s: %w: it has %d bytes", id, ErrTooLarge, len(content))
	}
	return len(content), folder.Write(root, id+folder.Suffix, content)
}

// prune removes records until the folder is within its limits. It also removes abandoned drafts. The caller must hold
// k.pruning.
func (k *Keeper) prune() error {
	k.mu.Lock()
	k.added, k.bytes = 0, 0
	shared := k.shared
	k.mu.Unlock()
	kept, err := folder.Look(k.root)
	ids := folder.IDs(maps.Keys(kept))
	if shared && isOver(kept) {
		k.tenants = k.tenantsOf(ids)
		fairly(ids, kept, k.tenants)
	}
	return errors.Join(err, folder.Trim(k.root, ids, kept, MaxRecords, MaxBytes))
}

// tenantsOf returns the tenants of records. A record that cannot be read has the tenant "". The caller must hold
// k.pruning.
func (k *Keeper) tenantsOf(ids []string) map[string]string {
	tenants := make(map[string]string, len(ids))
	for _, id := range ids {
		tenant, ok := k.tenants[id]
		if !ok {
			tenant, _ = k.folder.tenant(k.root, id)
		}
		tenants[id] = tenant
	}
	return tenants
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
