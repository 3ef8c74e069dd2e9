package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
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
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, &Error{"keep", string(f), reason(err)}
	}
	root, err := f.open()
	if err != nil {
		return nil, &Error{"keep", string(f), reason(err)}
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

func write(root *os.Root, entry Entry) (err error) {
	id := entry.Record.CallID
	if !isID(id, false) {
		return fmt.Errorf("%q: %w", id, ErrID)
	}
	content, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	if len(content) > MaxBytes {
		return fmt.Errorf("%s: %w: it has %d bytes", id, ErrTooLarge, len(content))
	}
	draft := "." + id + temporary
	file, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = root.Rename(draft, id+suffix)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(draft))
	}
	return err
}

// prune removes the oldest records until no more than so many of so many bytes are left,
// and drafts of processes that ended before they were done.
func prune(root *os.Root, most int, bytes int64) error {
	files, err := list(root)
	if err != nil {
		return err
	}
	var problems []error
	sizes := map[string]int64{}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			problems = append(problems, present(err))
			continue
		}
		sizes[file.Name()] = info.Size()
		if isDraft(file.Name()) && time.Since(info.ModTime()) > abandoned {
			problems = append(problems, present(root.Remove(file.Name())))
		}
	}
	for i, id := range idsOf(files) {
		if bytes -= sizes[id+suffix]; i >= most || bytes < 0 {
			problems = append(problems, present(root.Remove(id+suffix)))
		}
	}
	return errors.Join(problems...)
}

func isDraft(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporary)
}

// reason returns an error without the path, which stands beside it.
func reason(err error) error {
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		return inPath.Err
	}
	return err
}
