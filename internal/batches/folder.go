package batches

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
)

// The limits of a folder. Beyond them, batches are removed: ended ones before paused ones, and the
// oldest first.
const (
	MaxBatches = 200
	MaxBytes   = 256 << 20 // of all files together
)

// retention is the time for which a file is kept. It is far longer than a batch can be resumed, so that a claimed batch
// can be distinguished from an unclaimed one.
const retention = 7 * 24 * time.Hour

const taken = ".taken" // suffix of the markers of claimed states

// Folder is the path of a folder of batches. The folder need not exist. "" means no folder.
type Folder string

// In returns the folder of batches in the state folder.
func In(state string) Folder { return Folder(filepath.Join(state, "batches")) }

// Check returns an error if nothing can be kept in the folder. It creates the folder if necessary.
func (f Folder) Check() error {
	root, err := folder.Make(string(f))
	if err == nil {
		err = root.Close()
	}
	return failure("keep", string(f), err)
}

// Guarded returns a list of the folder, or nil if there is no folder.
func (f Folder) Guarded() []string {
	if f == "" {
		return nil
	}
	return []string{string(f)}
}

// New returns the place for a batch with the id.
func (f Folder) New(id string) (*Place, error) {
	if !folder.IsID(id) {
		return nil, failure("keep", string(f), fmt.Errorf("%q is not a batch's id", id))
	}
	return &Place{folder: f, dir: string(f), name: id + folder.Suffix, private: true}, nil
}

// Find returns the place of a batch by its id or a unique prefix of at least [folder.MinPrefix]
// characters. The error wraps [ErrNotFound], [ErrAmbiguous] or an error of the operating system.
func (f Folder) Find(id string) (*Place, error) {
	var found []string
	var err error
	if folder.IsPrefix(id) {
		found, err = folder.Find(string(f), id)
	}
	switch {
	case err != nil:
	case len(found) == 0:
		err = fmt.Errorf("%q: %w", id, ErrNotFound)
	case len(found) > 1:
		err = fmt.Errorf("%q: %w: %s", id, ErrAmbiguous, strings.Join(found[:min(len(found), 5)], ", "))
	default:
		return f.New(found[0])
	}
	return nil, failure("find", string(f), err)
}

// failure adds the operation and the path of a folder or a file to an error.
func failure(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, path, folder.Reason(err))
}

// At returns the place of a batch in a file that the user chooses. Claims are also kept in the
// folder, unless it is "".
func (f Folder) At(file string) *Place {
	return &Place{folder: f, dir: filepath.Dir(file), name: filepath.Base(file)}
}

// hasEnded reports whether a file is the note of an ended batch. Such a file is small.
func hasEnded(root *os.Root, file fs.FileInfo) bool {
	const limit = 1 << 10
	if file.Size() > limit {
		return false
	}
	content, err := folder.Read(root, file.Name(), limit)
	if err != nil {
		return false
	}
	_, err = decode(content)
	return errors.Is(err, ErrEnded)
}

// prune removes batches until at most limit of them with at most bytes bytes in total are left. It
// also removes expired files, markers and drafts.
func prune(root *os.Root, limit int, bytes int64) error {
	known, err := folder.Look(root)
	problems := []error{err}
	var paused, ended []string
	for _, id := range folder.IDs(maps.Keys(known)) {
		switch file := known[id+folder.Suffix]; {
		case isExpired(file):
			problems = append(problems, folder.Remove(root, file.Name()))
		case hasEnded(root, file):
			ended = append(ended, id)
		default:
			paused = append(paused, id)
		}
	}
	for name, file := range known {
		if strings.HasSuffix(name, taken) && isExpired(file) {
			problems = append(problems, folder.Remove(root, name))
		}
	}
	return errors.Join(append(problems, folder.Trim(root, slices.Concat(paused, ended), known, limit, bytes))...)
}

func isExpired(file fs.FileInfo) bool { return time.Since(file.ModTime()) > retention }
