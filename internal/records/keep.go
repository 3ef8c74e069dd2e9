package records

import (
	"encoding/json"
	"errors"
	"fmt"
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
		return nil, &Error{"keep", string(f), folder.Reason(err)}
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
	return k.failure(err)
}

// Close prunes the folder and closes the keeper.
func (k *Keeper) Close() error {
	return k.failure(errors.Join(prune(k.root, MaxRecords, MaxBytes), k.root.Close()))
}

func (k *Keeper) failure(err error) error {
	if err == nil {
		return nil
	}
	return &Error{"keep", string(k.folder), err}
}

func write(root *os.Root, entry Entry) error {
	id := entry.Record.CallID
	if !folder.IsID(id, false) {
		return fmt.Errorf("%q: %w", id, ErrID)
	}
	content, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	if len(content) > MaxBytes {
		return fmt.Errorf("%s: %w: it has %d bytes", id, ErrTooLarge, len(content))
	}
	return folder.Write(root, id+suffix, content)
}

// prune removes the oldest records until at most most records with at most bytes bytes in total are
// left. It also removes abandoned drafts.
func prune(root *os.Root, most int, bytes int64) error {
	files, err := folder.List(root)
	if err != nil {
		return err
	}
	kept, err := folder.Look(root, files)
	problems := []error{err}
	for i, id := range idsOf(files) {
		if bytes -= kept[id+suffix].Bytes; i >= most || bytes < 0 {
			problems = append(problems, folder.Remove(root, id+suffix))
		}
	}
	return errors.Join(problems...)
}
