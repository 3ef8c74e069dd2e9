package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
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

	mu   sync.Mutex
	kept int
}

// Open returns a keeper for the folder, and creates the folder if necessary.
func (f Folder) Open() (*Keeper, error) {
	root, err := folder.Make(string(f))
	if err != nil {
		return nil, f.failure("keep", folder.Reason(err))
	}
	return &Keeper{folder: f, root: root}, nil
}

// Keep writes one entry. It writes atomically: concurrent readers see the whole record or none.
func (k *Keeper) Keep(entry Entry) error {
	err := write(k.root, entry)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept++; k.kept%pruned == 0 {
		err = errors.Join(err, prune(k.root, MaxRecords, MaxBytes))
	}
	return k.folder.failure("keep", err)
}

// Close prunes the folder and closes the keeper.
func (k *Keeper) Close() error {
	return k.folder.failure("keep", errors.Join(prune(k.root, MaxRecords, MaxBytes), k.root.Close()))
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

// prune removes the oldest records until at most most records with at most bytes bytes in total are
// left. It also removes abandoned drafts.
func prune(root *os.Root, most int, bytes int64) error {
	kept, err := folder.Look(root)
	return errors.Join(err, folder.Trim(root, folder.IDs(maps.Keys(kept)), kept, most, bytes))
}
