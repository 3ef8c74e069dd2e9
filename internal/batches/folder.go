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

// The limits of a folder. Beyond them, batches are removed: ended ones before paused ones, and the
// oldest first.
const (
	MaxBatches = 200
	MaxBytes   = 256 << 20 // of all files together
)

// kept is how long a file is kept. It is far longer than a batch can be resumed, so that a claimed
// batch can be distinguished from an unclaimed one.
const kept = 7 * 24 * time.Hour

const (
	suffix = ".json"
	taken  = ".taken" // suffix of the markers of claimed states
)

// MinPrefix is the minimum number of characters of a batch's id that [Folder.Find] accepts.
const MinPrefix = 8

// Folder is the path of a folder of batches. The folder need not exist. "" means no folder.
type Folder string

// In returns the folder of batches in the state folder.
func In(state string) Folder { return Folder(filepath.Join(state, "batches")) }

// IsID reports whether a text may be a batch's id or a prefix that [Folder.Find] accepts.
func IsID(text string) bool {
	return len(text) >= MinPrefix && strings.Trim(strings.ToLower(text), "0123456789abcdef-") == ""
}

// Check returns an error if nothing can be kept in the folder. It creates the folder if necessary.
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

// Dirs returns a list of the folder, or nil if there is no folder.
func (f Folder) Dirs() []string {
	if f == "" {
		return nil
	}
	return []string{string(f)}
}

// New returns the place for a batch with the id.
func (f Folder) New(id string) (*Place, error) {
	if !folder.IsID(id, false) {
		return nil, &Error{"keep", string(f), fmt.Errorf("%q is not a batch's id", id)}
	}
	return &Place{folder: f, dir: string(f), name: id + suffix, private: true}, nil
}

// Find returns the place of a batch by its id or a unique prefix of at least [MinPrefix]
// characters. The error wraps [ErrNotFound], [ErrAmbiguous] or an error of the operating system.
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

// At returns the place of a batch in a file that the user chooses. Claims are also kept in the
// folder, unless it is "".
func (f Folder) At(file string) *Place {
	return &Place{folder: f, dir: filepath.Dir(file), name: filepath.Base(file)}
}

// hasEnded reports whether a file is the note of an ended batch. Such a file is small.
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

// prune removes batches until at most most of them with at most bytes bytes in total are left. It
// also removes expired files, markers and drafts.
func prune(root *os.Root, most int, bytes int64) error {
	files, err := folder.List(root)
	if err != nil {
		return err
	}
	known, err := folder.Look(root, files)
	problems := []error{err}
	var batches []string
	ended := map[string]int{} // 1 for ended batches
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
