package files

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/manifests"
)

// maxDepth is the maximum depth of a directory tree that is measured. The walk holds one handle for each level.
const maxDepth = 128

// tracker tracks how full one host directory is. It measures the directory before the first change,
// and every change through the store updates it. It measures again after another store, of this process
// or another one, has changed the directory. Changes by other programs are noticed only by the
// next measurement, which happens at the latest after all calls have released the directory.
type tracker struct {
	directory os.FileInfo // identity; immutable
	holders   int         // guarded by Store.mu

	// turn is a lock that is held during every change and every open, so that checks stay valid. It is a channel of
	// capacity 1 so that a context can end the wait.
	turn chan struct{}
	// lock excludes other stores during every change. The holder of the turn uses it.
	lock directoryLock

	mu    sync.Mutex // guards the following fields
	bytes manifests.Bytes
	files int
	// measured reports whether bytes and files are valid. They are exact unless partial is
	// set: then they are lower bounds and the directory is full. A directory that is too deep
	// is partial too. shrunk reports whether something was removed or moved since then.
	measured, partial, deep, shrunk bool
	open                            fileMap[*openFile]
}

type openFile struct {
	handles []*os.File
	orphan  bool // its last name was removed; its bytes count until it is closed
}

func (t *tracker) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	default: // call Done only if the turn is taken, since Done may make a timer
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *tracker) give() { <-t.turn }

// enter waits for the turn, and then until no other store changes the directory. The error is errNoLock, once, if other
// stores cannot be excluded.
func (t *tracker) enter(ctx context.Context, root *os.Root) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	changed, err := t.lock.acquire(ctx, root)
	if err != nil && !errors.Is(err, errNoLock) {
		t.give()
		return err
	}
	if changed {
		t.mu.Lock()
		t.measured = false
		t.mu.Unlock()
	}
	return err
}

// leave lets other calls and stores change the directory.
func (t *tracker) leave() {
	t.lock.release()
	t.give()
}

// measure walks the directory unless the numbers suffice for the quota. The caller must hold the
// turn. Open files without a name count, although the walk does not find them.
//
// The walk of a directory over its quota stops at twice the quota. So the directory need not be
// walked again until removals have brought the count back to the quota.
func (t *tracker) measure(ctx context.Context, root *os.Root, quota manifests.Quota) error {
	if t.known(quota) {
		return nil
	}
	w := walk{ctx: ctx, bound: doubled(quota)}
	err := w.directory(root, 0)
	if err != nil && !errors.Is(err, errBeyond) && !errors.Is(err, errDeep) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes, t.files = w.bytes+t.orphaned(), w.files
	t.measured, t.partial, t.deep, t.shrunk = true, err != nil, errors.Is(err, errDeep), false
	return nil
}

// known reports whether the numbers determine if the directory is within a quota.
func (t *tracker) known(quota manifests.Quota) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.measured:
		return false
	case !t.partial:
		return true
	case t.deep:
		return !t.shrunk
	}
	return t.bytes > quota.Bytes || t.files > quota.Files
}

// room returns [errno.NoSpace] if the quota does not allow the directory to grow. The caller must hold the turn.
func (t *tracker) room(
	ctx context.Context, root *os.Root, quota manifests.Quota, bytes manifests.Bytes, files int,
) error {
	if err := t.measure(ctx, root, quota); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.partial || bytes > quota.Bytes-t.bytes || files > quota.Files-t.files {
		return errno.NoSpace
	}
	return nil
}

func (t *tracker) add(bytes manifests.Bytes, files int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(bytes, files)
}

// count accounts for added bytes and files, or for removed ones, which are negative. The caller must hold mu.
func (t *tracker) count(bytes manifests.Bytes, files int) {
	t.bytes, t.files = max(0, t.bytes+bytes), max(0, t.files+files)
	t.shrunk = t.shrunk || bytes < 0 || files < 0
}

// renamed notes that a name was moved, since the directory may be less deep now.
func (t *tracker) renamed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrunk = true
}

// orphaned returns the bytes of the open files without a name, no matter which process removed it. The caller must hold
// mu.
func (t *tracker) orphaned() (bytes manifests.Bytes) {
	for f := range t.open.all() {
		if info, err := f.handles[0].Stat(); err == nil && isUnlinked(info) {
			f.orphan = true
			bytes += manifests.Bytes(info.Size())
		}
	}
	return bytes
}

func (t *tracker) opened(info os.FileInfo, handle *os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.open.get(info)
	if !known {
		f = &openFile{}
		t.open.put(info, f)
	}
	f.handles = append(f.handles, handle)
}

// closed removes a handle of a file, which must still be open. It returns the bytes that this frees, and whether the
// file is gone.
func (t *tracker) closed(info os.FileInfo, handle *os.File) (freed manifests.Bytes, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, _ := t.open.get(info)
	f.handles = slices.DeleteFunc(f.handles, func(other *os.File) bool { return other == handle })
	if len(f.handles) > 0 {
		return 0, false
	}
	t.open.remove(info)
	if !f.orphan {
		return 0, false
	}
	if now, err := handle.Stat(); err == nil { // other calls may have changed its size
		freed = manifests.Bytes(now.Size())
		t.count(-freed, 0)
	}
	return freed, true
}

// removed accounts for a removed name, given the file's description from before. It returns the
// bytes that were freed at once, and whether the file is gone. Nothing is freed if the file has
// other names, or if its number of names is not known.
func (t *tracker) removed(info os.FileInfo) (freed manifests.Bytes, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone = info.IsDir() || detailsOf(info).links == 1
	if gone && hasBytes(info) {
		if f, open := t.open.get(info); open {
			f.orphan, gone = true, false
		} else {
			freed = manifests.Bytes(info.Size())
		}
	}
	t.count(-freed, -1)
	return freed, gone
}

// hasBytes reports whether a file's size counts. It does for regular files and for symbolic links,
// whose targets guests choose.
func hasBytes(info os.FileInfo) bool { return info.Mode().IsRegular() || isLink(info.Mode()) }

// The errors that end a walk: the directory exceeds the bound or maxDepth.
var (
	errBeyond = errors.New("beyond the bound")
	errDeep   = errors.New("too deep")
)

// walk measures a directory tree, up to a bound and until the context is done.
type walk struct {
	ctx   context.Context
	bound manifests.Quota
	bytes manifests.Bytes
	files int
	// linked holds the files with several names. Each counts once.
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
			continue // removed concurrently by another program
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
			return nil // gone, or inaccessible to guests too
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

// names lists a directory. It fails with errBeyond if there are more names than the bound allows.
func (w *walk) names(root *os.Root) ([]string, error) {
	names, err := readNames(w.ctx, root, w.bound.Files-w.files)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, nil // inaccessible to guests too
	case errors.Is(err, errno.TooLarge):
		w.files = w.bound.Files + 1 // a lower bound
		return nil, errBeyond
	default:
		return names, err
	}
}

// readNames lists a directory in the system's order. It fails with [errno.TooLarge] if there are more than limit names.
func readNames(ctx context.Context, root *os.Root, limit int) (names []string, err error) {
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
		case len(names) > limit:
			return nil, errno.TooLarge
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, err
		}
	}
}
