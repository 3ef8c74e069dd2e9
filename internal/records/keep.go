package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/caisson-run/caisson/internal/folder"
)

// pruned is after how many records room is made. Until then a folder may hold so many more
// than it should.
const pruned = 64

// Keeper keeps the records of calls as they end. Get one from [Folder.Open], and close it. It
// is safe for concurrent use.
type Keeper struct {
	folder Folder
	root   *os.Root

	mu   sync.Mutex
	kept int
}

// Open returns a keeper for the folder, which is created if need be.
func (f Folder) Open() (*Keeper, error) {
	root, err := folder.Make(string(f))
	if err != nil {
		return nil, &Error{"keep", string(f), folder.Reason(err)}
	}
	return &Keeper{folder: f, root: root}, nil
}

// Keep writes one entry. A record is there as a whole or not at all, also for those who
// read at the same time.
func (k *Keeper) Keep(entry Entry) error {
	err := write(k.root, entry)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept++; k.kept%pruned == 0 {
		err = errors.Join(err, prune(k.root, MaxRecords, MaxBytes))
	}
	return k.failure(err)
}

// Close makes room in the folder, and ends the keeper.
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

// prune removes the oldest records until no more than so many of so many bytes are left,
// and drafts of processes that ended before they were done.
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
