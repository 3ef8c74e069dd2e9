package batches

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
)

// What a folder holds at most. When more is added, what is oldest goes, and batches that have ended
// before those that wait.
const (
	MaxBatches = 200
	MaxBytes   = 256 << 20 // of all files together
)

// kept is for how long a file stays: far longer than a batch can be resumed, so that one which
// was claimed can be told from one that was not.
const kept = 7 * 24 * time.Hour

const (
	suffix = ".json"
	taken  = ".taken" // of the files that say that a state was claimed
)

// MinPrefix is how many characters of a batch's id [Folder.Find] needs at least.
const MinPrefix = 8

// Folder is the path of a folder with batches. It need not exist. "" is no folder.
type Folder string

// In returns the folder of batches within the folder for state.
func In(state string) Folder { return Folder(filepath.Join(state, "batches")) }

// IsID reports whether a text may be a batch's id, or the beginning of one.
func IsID(text string) bool {
	return len(text) >= MinPrefix && strings.Trim(strings.ToLower(text), "0123456789abcdef-") == ""
}

// Check reports why nothing can be kept in the folder, which is created if need be.
func (f Folder) Check() error {
	root, err := folder.Make(string(f))
	if err == nil {
		err = root.Close()
	}
	if err != nil {
		return &Error{"keep", string(f), folder.Reason(err)}
	}
	return nil
}

// Dirs returns the folder, or nothing for none.
func (f Folder) Dirs() []string {
	if f == "" {
		return nil
	}
	return []string{string(f)}
}

// New returns the place for a batch of that id.
func (f Folder) New(id string) (*Place, error) {
	if !folder.IsID(id, false) {
		return nil, &Error{"keep", string(f), fmt.Errorf("%q is not a batch's id", id)}
	}
	return &Place{folder: f, dir: string(f), name: id + suffix, private: true}, nil
}

// Find returns the place of a batch. The first [MinPrefix] characters of its id are enough, or
// more where several have those. The error wraps [ErrNotFound], [ErrAmbiguous] or the operating
// system's.
func (f Folder) Find(id string) (*Place, error) {
	files, err := f.list()
	if err != nil {
		return nil, &Error{"find", string(f), folder.Reason(err)}
	}
	var found []string
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), suffix); ok && folder.IsID(name, false) && IsID(id) && strings.HasPrefix(name, strings.ToLower(id)) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return nil, &Error{"find", string(f), fmt.Errorf("%q: %w", id, ErrNotFound)}
	case 1:
		return f.New(found[0])
	}
	slices.Sort(found)
	return nil, &Error{"find", string(f), fmt.Errorf("%q: %w: %s", id, ErrAmbiguous, strings.Join(found[:min(len(found), 5)], ", "))}
}

func (f Folder) list() (_ []fs.DirEntry, err error) {
	root, err := folder.Open(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return folder.List(root)
}

// At returns the place of a batch in a file of the user's choice. The folder, which may be "",
// remembers what was claimed.
func (f Folder) At(file string) *Place {
	return &Place{folder: f, dir: filepath.Dir(file), name: filepath.Base(file)}
}

// hasEnded reports whether a file is what is left of a batch that has ended, which is little.
func hasEnded(root *os.Root, name string, size int64) bool {
	const most = 1 << 10
	if size > most {
		return false
	}
	content, err := folder.Read(root, name, most)
	if err != nil {
		return false
	}
	_, err = decode(content)
	return errors.Is(err, ErrEnded)
}

// prune removes the oldest batches until no more are left than there is room for, and what is of
// no use any more.
func prune(root *os.Root, most int, bytes int64) error {
	files, err := folder.List(root)
	if err != nil {
		return err
	}
	known, err := folder.Look(root, files)
	problems := []error{err}
	var batches []string
	ended := map[string]int{} // 1 for those
	for name, file := range known {
		id, isBatch := strings.CutSuffix(name, suffix)
		isBatch = isBatch && folder.IsID(id, false)
		switch {
		case (isBatch || strings.HasSuffix(name, taken)) && time.Since(file.Changed) > kept:
			problems = append(problems, folder.Remove(root, name))
		case isBatch:
			batches = append(batches, name)
			if hasEnded(root, name, file.Bytes) {
				ended[name] = 1
			}
		}
	}
	slices.SortFunc(batches, func(a, b string) int {
		return cmp.Or(cmp.Compare(ended[a], ended[b]), strings.Compare(b, a)) // ids grow with time
	})
	for i, name := range batches {
		if bytes -= known[name].Bytes; i >= most || bytes < 0 {
			problems = append(problems, folder.Remove(root, name))
		}
	}
	return errors.Join(problems...)
}
