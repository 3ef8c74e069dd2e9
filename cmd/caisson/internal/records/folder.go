package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"time"
)

const (
	suffix    = ".json"
	temporary = ".tmp" // behind a dot and the id, while a file is being written
	abandoned = time.Hour
)

// Folder is the path of a folder with records. It need not exist.
type Folder string

// open opens the folder. It refuses one that others may reach: arguments and results are
// nobody else's business, and what others can write is no record of anything.
func (f Folder) open() (*os.Root, error) {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, err
	}
	if info, err := root.Stat("."); err != nil {
		return nil, errors.Join(err, root.Close())
	} else if mode := info.Mode().Perm(); goruntime.GOOS != "windows" && mode&0o077 != 0 {
		_ = root.Close() // it was only read
		return nil, fmt.Errorf("%w: its mode is %v (chmod 700)", ErrExposed, mode)
	}
	return root, nil
}

// idsOf returns the ids of the records among files, the newest first.
func idsOf(files []fs.DirEntry) []string {
	var found []string
	for _, file := range files {
		if id, ok := strings.CutSuffix(file.Name(), suffix); ok && isID(id, false) {
			found = append(found, id)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(b, a) })
	return found
}

func list(root *os.Root) (_ []fs.DirEntry, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.ReadDir(-1)
}

// present returns nil for what another process has removed meanwhile.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
