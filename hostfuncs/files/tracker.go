package files

import (
	"context"
	"errors"
	"io"
	"math"
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

	// turn is held through every change and every open, so that what is checked is
	// still true when it is done. It is a channel with room for one, since waiting for it
	// ends with a context.
	turn chan struct{}

	mu    sync.Mutex // guards what follows
	bytes manifests.Bytes
	files int
	// measured is set once the numbers mean something. They are exact unless partial is
	// set: then the directory holds at least that much, and is full. So is one that is too
	// deep; shrunk says that something was taken away or moved since that was found.
	measured, partial, deep, shrunk bool
	// open counts the files that calls have open; orphans are those of them whose
	// last name was removed: their bytes count until they are closed.
	open    fileMap[int]
	orphans fileMap[struct{}]
}

func newTracker(directory os.FileInfo) *tracker {
	return &tracker{directory: directory, turn: make(chan struct{}, 1)}
}

// take waits for the turn.
func (t *tracker) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	default: // mostly nobody has it, and then Done need not make a timer
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give lets the next one have the turn.
func (t *tracker) give() { <-t.turn }

// measure makes the numbers mean something. Whoever calls it has the turn.
//
// A directory that is beyond its quota is walked up to twice that. So there is no need to
// walk it again before about as much was taken away as was counted in vain.
func (t *tracker) measure(ctx context.Context, root *os.Root, quota Quota) error {
	if t.known(quota) {
		return nil
	}
	w := walk{ctx: ctx, bound: quota.doubled()}
	err := w.directory(root, 0)
	if err != nil && !errors.Is(err, errBeyond) && !errors.Is(err, errDeep) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes, t.files = w.bytes, w.files
	t.measured, t.partial, t.deep, t.shrunk = true, err != nil, errors.Is(err, errDeep), false
	return nil
}

// known reports whether the numbers say if a directory is within a quota.
func (t *tracker) known(quota Quota) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.measured:
		return false
	case !t.partial:
		return true
	case !t.orphans.empty(): // which a walk does not find
		return true
	case t.deep:
		return !t.shrunk
	}
	return t.bytes > quota.Bytes || t.files > quota.Files
}

// room reports whether the directory may grow. Whoever calls it has the turn.
func (t *tracker) room(ctx context.Context, root *os.Root, quota Quota, bytes manifests.Bytes, files int) error {
	if err := t.measure(ctx, root, quota); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.partial || bytes > quota.Bytes-t.bytes || files > quota.Files-t.files {
		return ErrNoSpace
	}
	return nil
}

func (t *tracker) add(bytes manifests.Bytes, files int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes += bytes
	t.files += files
}

func (t *tracker) subtract(bytes manifests.Bytes, files int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = max(0, t.bytes-bytes)
	t.files = max(0, t.files-files)
	t.shrunk = true
}

// renamed notes that a name was moved: the directory may be less deep now.
func (t *tracker) renamed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrunk = true
}

// opened counts one more handle of a file.
func (t *tracker) opened(info os.FileInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, _ := t.open.get(info)
	t.open.put(info, n+1)
}

// closed counts one handle less. It reports whether that freed the file's bytes.
func (t *tracker) closed(info os.FileInfo) (freed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
		if t.orphaned(info) {
			gone = false
		} else {
			freed = manifests.Bytes(info.Size())
		}
	}
	t.subtract(freed, 1)
	return freed, gone
}

// orphaned notes that the last name of a file was removed, if the file is open.
func (t *tracker) orphaned(info os.FileInfo) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, _ := t.open.get(info)
	if n > 0 {
		t.orphans.put(info, struct{}{})
	}
	return n > 0
}

// hasBytes reports whether a file's size counts: of regular files, and of symbolic
// links, whose targets guests choose.
func hasBytes(info os.FileInfo) bool {
	kind := kindOf(info.Mode())
	return kind == Regular || kind == Symlink
}

// What ends a walk: the directory is beyond the bound, or deeper than maxDepth.
var (
	errBeyond = errors.New("beyond the bound")
	errDeep   = errors.New("too deep")
)

// walk adds up a directory tree, up to a bound and until the context ends.
type walk struct {
	ctx   context.Context
	bound Quota
	bytes manifests.Bytes
	files int
	// linked holds the files with several names, which count once.
	linked fileMap[struct{}]
}

func (w *walk) directory(root *os.Root, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	names, err := w.names(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.ctx.Err(); err != nil {
			return err
		}
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
		if w.bytes += min(manifests.Bytes(info.Size()), math.MaxInt64-w.bytes); w.bytes > w.bound.Bytes {
			return errBeyond
		}
	}
	return nil
}

// names lists a directory, or fails once there are more names than the bound leaves
// room for.
func (w *walk) names(root *os.Root) ([]string, error) {
	names, err := readNames(w.ctx, root, w.bound.Files-w.files)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, nil // as closed to guests as it is to the walk
	case errors.Is(err, ErrTooLarge):
		w.files = w.bound.Files + 1 // at least
		return nil, errBeyond
	default:
		return names, err
	}
}

// readNames lists a directory in the system's order. It fails with [ErrTooLarge] where
// there are more than most names.
func readNames(ctx context.Context, root *os.Root, most int) (names []string, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
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
