package files

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/caisson-run/caisson/manifests"
)

// maxDepth is how deep a directory tree is measured. Each level holds a handle while
// it is walked.
const maxDepth = 128

// tracker knows how full one host directory is. It is measured before the first
// change, and then kept up to date by every change that goes through the store; what
// other programs change shows at the next measurement, which comes when no call held
// the directory in between.
type tracker struct {
	directory os.FileInfo // identity; immutable
	holders   int         // guarded by Store.mu

	// mu is held through every change and every open, so that what is checked is
	// still true when it is done.
	mu    sync.Mutex
	bytes manifests.Bytes
	files int
	// measured is set once the numbers mean something. They are exact unless over
	// is set: then the walk stopped at bound, and the directory was beyond it.
	measured, over, shrunk bool
	bound                  Quota
	// open counts the files that calls have open; orphans are those of them whose
	// last name was removed: their bytes count until they are closed.
	open    fileMap[int]
	orphans fileMap[struct{}]
}

// measure makes the numbers mean something. A directory that was beyond its quota is
// measured again only after something was taken away, or under a larger quota.
func (t *tracker) measure(root *os.Root, quota Quota) error {
	if t.measured && !t.over {
		return nil
	}
	if t.measured && !t.shrunk && quota.Bytes <= t.bound.Bytes && quota.Files <= t.bound.Files {
		return nil
	}
	w := walk{bound: quota}
	err := w.directory(root, 0)
	if err != nil && !errors.Is(err, errBeyond) {
		return err
	}
	t.bytes, t.files, t.bound = w.bytes, w.files, quota
	t.measured, t.over, t.shrunk = true, err != nil, false
	t.orphans = fileMap[struct{}]{}
	return nil
}

// room reports whether the directory may grow.
func (t *tracker) room(root *os.Root, quota Quota, bytes manifests.Bytes, files int) error {
	if err := t.measure(root, quota); err != nil {
		return err
	}
	if t.over || bytes > quota.Bytes-t.bytes || files > quota.Files-t.files {
		return ErrNoSpace
	}
	return nil
}

func (t *tracker) add(bytes manifests.Bytes, files int) {
	t.bytes += bytes
	t.files += files
}

func (t *tracker) subtract(bytes manifests.Bytes, files int) {
	t.bytes = max(0, t.bytes-bytes)
	t.files = max(0, t.files-files)
	t.shrunk = true
}

// opened counts one more handle of a file.
func (t *tracker) opened(info os.FileInfo) {
	n, _ := t.open.get(info)
	t.open.put(info, n+1)
}

// closed counts one handle less. It reports whether that freed the file's bytes.
func (t *tracker) closed(info os.FileInfo) (freed bool) {
	n, _ := t.open.get(info)
	if n > 1 {
		t.open.put(info, n-1)
		return false
	}
	t.open.remove(info)
	if _, orphan := t.orphans.get(info); orphan {
		t.orphans.remove(info)
		return true
	}
	return false
}

// removed accounts for a name that was taken away, given the file's description from
// before. It returns the bytes that were freed at once, and whether the file is gone.
// A file with other names, or with names that cannot be counted, frees nothing.
func (t *tracker) removed(info os.FileInfo) (freed manifests.Bytes, gone bool) {
	gone = info.IsDir() || detailsOf(info).links == 1
	if gone && hasBytes(info) {
		if n, _ := t.open.get(info); n > 0 {
			t.orphans.put(info, struct{}{})
			gone = false
		} else {
			freed = manifests.Bytes(info.Size())
		}
	}
	t.subtract(freed, 1)
	return freed, gone
}

// hasBytes reports whether a file's size counts: of regular files, and of symbolic
// links, whose targets guests choose.
func hasBytes(info os.FileInfo) bool {
	kind := kindOf(info.Mode())
	return kind == Regular || kind == Symlink
}

// errBeyond ends a walk whose directory is beyond the bound.
var errBeyond = errors.New("beyond the bound")

// walk adds up a directory tree, up to a bound.
type walk struct {
	bound Quota
	bytes manifests.Bytes
	files int
	// linked holds the files with several names, which count once.
	linked fileMap[struct{}]
}

func (w *walk) directory(root *os.Root, depth int) error {
	if depth > maxDepth {
		return errBeyond
	}
	names, err := w.names(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := root.Lstat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed meanwhile by another program
		}
		if err != nil {
			return err
		}
		if err := w.entry(root, name, info, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(root *os.Root, name string, info os.FileInfo, depth int) error {
	w.files++
	switch {
	case w.files > w.bound.Files:
		return errBeyond
	case info.IsDir():
		child, err := openDirectory(root, name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return nil // gone, or as closed to guests as it is to the walk
		}
		if err != nil {
			return err
		}
		defer child.Close()
		return w.directory(child, depth+1)
	case hasBytes(info):
		if detailsOf(info).links > 1 {
			if _, seen := w.linked.get(info); seen {
				return nil
			}
			w.linked.put(info, struct{}{})
		}
		if manifests.Bytes(info.Size()) > w.bound.Bytes-w.bytes {
			return errBeyond
		}
		w.bytes += manifests.Bytes(info.Size())
	}
	return nil
}

// names lists a directory, or fails once there are more names than the bound leaves
// room for.
func (w *walk) names(root *os.Root) ([]string, error) {
	names, err := readNames(root, w.bound.Files-w.files)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, nil // as closed to guests as it is to the walk
	case errors.Is(err, ErrTooLarge):
		return nil, errBeyond
	default:
		return names, err
	}
}

// readNames lists a directory in the system's order. It fails with [ErrTooLarge] where
// there are more than most names.
func readNames(root *os.Root, most int) (names []string, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for {
		batch, err := dir.Readdirnames(1024)
		names = append(names, batch...)
		switch {
		case len(names) > most:
			return nil, ErrTooLarge
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, err
		}
	}
}
