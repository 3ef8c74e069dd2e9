package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Keep writes the entries, of which the last are the newest, and makes room for them. It
// creates the folder if need be. A record is there as a whole or not at all, also for
// those who read at the same time. Where one cannot be kept, the others still are.
func (f Folder) Keep(entries []Entry) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return &Error{"keep", string(f), reason(err)}
	}
	root, err := f.open()
	if err != nil {
		return &Error{"keep", string(f), reason(err)}
	}
	var problems []error
	for _, entry := range entries[max(0, len(entries)-MaxRecords):] {
		problems = append(problems, write(root, entry))
	}
	problems = append(problems, prune(root, MaxRecords, MaxBytes), root.Close())
	if err := errors.Join(problems...); err != nil {
		return &Error{"keep", string(f), err}
	}
	return nil
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
