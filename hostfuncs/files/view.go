package files

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/manifests"
)

// maxLogged is the maximum number of lines that one call can log.
const maxLogged = 16

// View is one call's view of the host's files. Create it with [Store.Open]. It must be closed.
//
// A view, its directories and its files may be used by one goroutine at a time, like a WebAssembly
// instance. Paths use "/" on every system and are relative to a [Dir].
type View struct {
	// Journal has the operations that are subject to permissions: those on paths, and changes of an open file's size
	// and times. Reads and writes of a file are added to the operation that opened it: their bytes, their time and the
	// status of the last failure. Operations with two paths show both, as "/project/from -> /project/to". It also has
	// the receipts of denied operations. What an interpreter does to load itself and its program is left out: see
	// [Mount].
	Journal journal.Journal

	ctx      context.Context // of the current operation
	store    *Store
	mounts   []*mount // sorted by guest path
	limits   Limits
	preopens []Preopen
	top      Dir           // the virtual "/"
	first    [2]Preopen    // backing array of preopens, large enough for most calls
	escape   error         // the error of os.Root for a path that leaves it
	current  journal.Entry // of the current operation
	within   *mount        // in which the current operation is, or nil
	phase    phase
	logged   int
	closed   bool
	needs    string // see Needs

	added   manifests.Bytes // growth of the call's directories
	handles map[handle]struct{}

	// Inode numbers are private to the view. Those of mounts come first, in their order, so that a list of the mounts
	// is the same in all calls. Directories above the mounts have them by guest path.
	inodes        fileMap[uint64]
	virtualInodes map[string]uint64
	lastInode     uint64
}

type handle interface{ Close() error }

// mount is an opened [Mount].
type mount struct {
	Mount
	guest    string
	root     *os.Root // nil while the directory is missing, and for a tree
	inode    uint64   // of its directory, or of the tree's root; those of the tree's other files follow
	outlined bool     // the directory is that of a call, and there is none
	writable bool
	tracker  *tracker // nil while the directory is missing, and for a tree

	// parent is the nearest existing directory, and path leads from it to the missing one.
	parent *os.Root
	path   []string

	program string // the guest path of [Mount.Program]; empty if there is none
}

// isMissing reports whether the directory does not exist, as far as is known.
func (m *mount) isMissing() bool { return m.root == nil && len(m.path) > 0 }

// Preopen is a directory that is open when the guest starts.
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
		dir := &Dir{view: v, mount: m, root: m.root, guest: m.guest, rel: ".", preopened: true}
		if m.Tree != nil {
			dir.node = m.Tree.Root()
		}
		v.preopens = append(v.preopens, Preopen{m.guest, dir})
	}
	v.phase = v.firstPhase()
}

// Preopens returns "/" and then every mount, sorted by guest path. Unless there is a mount at "/",
// it is a virtual directory that shows the mounts. The caller must not modify the slice.
func (v *View) Preopens() []Preopen { return v.preopens }

// SetContext sets the context of later operations. When it is done, operations that would wait for
// another call or for the disk, or that process many names, fail with its error. The context is not
// a parameter because files are read and written through interfaces that take none.
func (v *View) SetContext(ctx context.Context) { v.ctx = ctx }

// Close closes the view and everything that is open in it. Closing it again does nothing.
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
		switch {
		case m.Tree != nil:
		case m.root == nil:
			failed = errors.Join(failed, v.fail("close", m.guest, m.parent.Close()))
		default:
			failed = errors.Join(failed, v.fail("close", m.guest, m.root.Close()))
			v.store.release(m.tracker)
		}
	}
	return failed
}

// fail converts an error of the host into one of this package, with a receipt if a permission
// denied the operation. Errors of this package are returned unchanged.
func (v *View) fail(op, guest string, err error) error {
	var own *Error
	if err == nil {
		return nil
	}
	if errors.As(err, &own) {
		return own // drop joined errors, which may contain host paths
	}
	if over := v.ctx.Err(); over != nil && errors.Is(err, over) {
		return &Error{Op: op, Path: shown(guest), Err: over}
	}
	if v.escape != nil && errors.Is(err, v.escape) {
		return v.deny(errno.Denied, op, guest, ruleLeaves, wanted{})
	}
	sentinel := sentinelOf(err)
	switch sentinel {
	case errno.Denied, errno.ReadOnly:
		return v.deny(sentinel, op, guest, ruleHost, wanted{})
	case errno.IO:
		v.warn("file operation failed on the host", op, guest, slog.Any("error", err))
		return &Error{Op: op, Path: shown(guest), Err: errno.IO, cause: err}
	}
	return &Error{Op: op, Path: shown(guest), Err: sentinel}
}

// warn logs something for the operator, unless the call has logged too much.
func (v *View) warn(message, op, guest string, detail slog.Attr) {
	if v.logged++; v.logged <= maxLogged {
		v.store.logger.Warn(message, slog.String("op", op), slog.String("path", shown(guest)), detail)
	}
}

// maxSyncs is the maximum number of concurrent syncs of a store, including abandoned ones.
const maxSyncs = 16

// sync runs a system operation that may take long and cannot be interrupted. It abandons the
// operation when the context is done.
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

// keep registers a handle. The caller has checked the limit.
func (v *View) keep(h handle) {
	if v.handles == nil {
		v.handles = map[handle]struct{}{}
	}
	v.handles[h] = struct{}{}
}

func (v *View) inode(info os.FileInfo) uint64 {
	n, known := v.inodes.get(info)
	if !known {
		n = v.nextInode()
		v.inodes.put(info, n)
	}
	return n
}

// virtualInode returns the inode number of a directory above the mounts, or of a mount as a name in one. Only if a
// directory is mounted twice does the second mount then have another number when it is described.
func (v *View) virtualInode(guest string) uint64 {
	if m := v.mountAt(guest); m != nil {
		return m.inode
	}
	if v.virtualInodes == nil {
		v.virtualInodes = map[string]uint64{}
	}
	if v.virtualInodes[guest] == 0 {
		v.virtualInodes[guest] = v.nextInode()
	}
	return v.virtualInodes[guest]
}

func (v *View) nextInode() uint64 {
	v.lastInode++
	return v.lastInode
}

func (v *View) describe(info os.FileInfo) guestfiles.Info {
	d := detailsOf(info)
	return guestfiles.Info{
		Kind: info.Mode().Type(), Size: info.Size(), Inode: v.inode(info), Links: max(1, d.links),
		Accessed: d.accessed, Modified: info.ModTime(), Changed: d.changed,
	}
}

func (v *View) describeVirtual(guest string) guestfiles.Info {
	epoch := time.Unix(0, 0)
	return guestfiles.Info{Kind: os.ModeDir, Inode: v.virtualInode(guest), Links: 1, Accessed: epoch, Modified: epoch,
		Changed: epoch}
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

// mountOver returns the mount that holds a guest path, or nil.
func (v *View) mountOver(guest string) *mount {
	guest = path.Clean(guest)
	for _, m := range v.mounts {
		if m.guest == guest || below(guest, m.guest) {
			return m
		}
	}
	return nil
}

// children returns the names in a directory above the mounts, sorted.
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

// below reports whether a clean absolute guest path is inside another one.
func below(guest, dir string) bool {
	return dir == "/" && guest != "/" || strings.HasPrefix(guest, dir+"/")
}
