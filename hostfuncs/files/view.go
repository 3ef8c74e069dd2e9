package files

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// maxLogged bounds the host's errors that one call can put into the log.
const maxLogged = 16

// View is what one call sees of the host's files. Get one from [Store.Open], and
// close it.
//
// A view with its directories and files is for one goroutine at a time, as a
// WebAssembly instance is. Its paths are written with "/" on every system and are
// relative to a [Dir].
type View struct {
	ctx      context.Context // of the operation under way
	store    *Store
	mounts   []*mount // sorted by guest path
	limits   Limits
	preopens []Preopen
	top      Dir        // the virtual "/"
	first    [2]Preopen // of most calls
	escape   error      // what os.Root answers to a path that leaves it
	journal  journal.Journal
	current  journal.Entry // of the operation that is under way
	logged   int
	closed   bool

	added   manifests.Bytes // by how much the call grew its directories
	handles map[handle]struct{}

	// Inode numbers are the view's own. Directories above the mounts have them by
	// guest path.
	inodes        fileMap[uint64]
	virtualInodes map[string]uint64
	lastInode     uint64
}

// handle is an open file or directory.
type handle interface{ Close() error }

// mount is an opened [Mount].
type mount struct {
	guest              string
	root               *os.Root
	writable           bool
	quota              Quota
	requested, granted manifests.Access
	cut                string
	tracker            *tracker
}

// Preopen is a directory that a guest finds open when it starts.
type Preopen struct {
	Path string
	Dir  *Dir
}

func (v *View) preopen() {
	v.preopens = v.first[:0]
	if len(v.mounts) == 0 || v.mounts[0].guest != "/" {
		v.top = Dir{view: v, guest: "/", preopened: true}
		v.preopens = append(v.preopens, Preopen{"/", &v.top})
	}
	for _, m := range v.mounts {
		v.preopens = append(v.preopens, Preopen{m.guest, &Dir{view: v, mount: m, root: m.root, guest: m.guest, rel: ".", preopened: true}})
	}
}

// Preopens returns the directory "/" and then every mount, sorted by guest path.
// Unless a mount is at "/", that is a virtual directory, which shows the mounts. The caller
// must not change it.
func (v *View) Preopens() []Preopen { return v.preopens }

// SetContext has the operations from now on end with a context: where they would wait for
// another call or for the disk, or look at many names, they fail with its error. Files are
// read and written through interfaces that take no context, so it is not a parameter.
func (v *View) SetContext(ctx context.Context) { v.ctx = ctx }

// Denials returns the receipts of what was refused, each once, in order: at most 32.
func (v *View) Denials() []tool.Denial { return v.journal.Denials() }

// Operations returns how many operations the call has made that a permission decides: on
// paths, and changes of an open file's size and times.
func (v *View) Operations() int64 { return v.journal.Count() }

// Close closes the view with everything that is open in it. Closing it again does
// nothing.
func (v *View) Close() error {
	if v.closed {
		return nil
	}
	var failed error
	for h := range v.handles {
		failed = errors.Join(failed, h.Close())
	}
	v.closed = true
	for _, m := range v.mounts {
		if err := m.root.Close(); err != nil {
			failed = errors.Join(failed, v.fail("close", m.guest, err))
		}
		v.store.release(m.tracker)
	}
	return failed
}

// fail turns an error of the host into one of this package's, with a receipt where a
// permission decided. Errors of this package pass.
func (v *View) fail(op, guest string, err error) error {
	var own *Error
	if err == nil {
		return nil
	}
	if errors.As(err, &own) {
		return own // without what was joined to it, which may name host paths
	}
	if over := v.ctx.Err(); over != nil && errors.Is(err, over) {
		return &Error{Op: op, Path: shown(guest), Err: over}
	}
	if v.escape != nil && errors.Is(err, v.escape) {
		return v.deny(ErrDenied, op, guest, ruleLeaves, wanted{})
	}
	sentinel := sentinelOf(err)
	switch sentinel {
	case ErrDenied, ErrReadOnly:
		return v.deny(sentinel, op, guest, ruleHost, wanted{})
	case ErrIO:
		if v.logged++; v.logged <= maxLogged {
			v.store.logger.Warn("file operation failed on the host", slog.String("op", op), slog.String("path", shown(guest)), slog.Any("error", err))
		}
		return &Error{Op: op, Path: shown(guest), Err: ErrIO, cause: err}
	}
	return &Error{Op: op, Path: shown(guest), Err: sentinel}
}

// maxSyncs bounds how many of a store's syncs are under way at once, those included that
// nobody waits for any more.
const maxSyncs = 16

// sync waits until the system has done something for which it may need long, and cannot be
// interrupted: once the context has ended, nobody waits for it any more.
func (v *View) sync(do func() error) error {
	select {
	case v.store.syncs <- struct{}{}:
	case <-v.ctx.Done():
		return v.ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-v.store.syncs }()
		done <- do()
	}()
	select {
	case err := <-done:
		return err
	case <-v.ctx.Done():
		return v.ctx.Err()
	}
}

// keep registers a handle, which must have been found to fit the limit.
func (v *View) keep(h handle) {
	if v.handles == nil {
		v.handles = map[handle]struct{}{}
	}
	v.handles[h] = struct{}{}
}

// full reports whether no more files can be opened.
func (v *View) full() bool { return len(v.handles) >= v.limits.OpenFiles }

// inode returns the view's own number of a file.
func (v *View) inode(info os.FileInfo) uint64 {
	n, known := v.inodes.get(info)
	if !known {
		v.lastInode++
		n = v.lastInode
		v.inodes.put(info, n)
	}
	return n
}

func (v *View) virtualInode(guest string) uint64 {
	n, known := v.virtualInodes[guest]
	if !known {
		v.lastInode++
		n = v.lastInode
		if v.virtualInodes == nil {
			v.virtualInodes = map[string]uint64{}
		}
		v.virtualInodes[guest] = n
	}
	return n
}

// describe turns the host's description of a file into the guest's.
func (v *View) describe(info os.FileInfo) Info {
	d := detailsOf(info)
	return Info{
		Kind: kindOf(info.Mode()), Size: info.Size(), Inode: v.inode(info), Links: max(1, d.links),
		Accessed: d.accessed, Modified: info.ModTime(), Changed: d.changed,
	}
}

func (v *View) describeVirtual(guest string) Info {
	epoch := time.Unix(0, 0)
	return Info{Kind: Directory, Inode: v.virtualInode(guest), Links: 1, Accessed: epoch, Modified: epoch, Changed: epoch}
}

func kindOf(mode os.FileMode) FileKind {
	switch mode.Type() {
	case 0:
		return Regular
	case os.ModeDir:
		return Directory
	case os.ModeSymlink:
		return Symlink
	default:
		return Unknown
	}
}

// mountAt returns the mount with exactly this guest path, or nil.
func (v *View) mountAt(guest string) *mount {
	for _, m := range v.mounts {
		if m.guest == guest {
			return m
		}
	}
	return nil
}

// isVirtual reports whether a clean guest path is a directory above a mount.
func (v *View) isVirtual(guest string) bool {
	return guest == "/" || slices.ContainsFunc(v.mounts, func(m *mount) bool { return below(m.guest, guest) })
}

// covered reports whether a clean guest path is a mount, or lies above or below one.
func (v *View) covered(guest string) bool {
	return v.isVirtual(guest) || slices.ContainsFunc(v.mounts, func(m *mount) bool {
		return m.guest == guest || below(guest, m.guest)
	})
}

// children lists what a directory above the mounts shows.
func (v *View) children(guest string) []string {
	var names []string
	prefix := strings.TrimSuffix(guest, "/") + "/"
	for _, m := range v.mounts {
		rest, found := strings.CutPrefix(m.guest, prefix)
		if !found || rest == "" {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// below reports whether a clean absolute guest path lies under another one.
func below(guest, dir string) bool {
	return dir == "/" && guest != "/" || strings.HasPrefix(guest, dir+"/")
}
