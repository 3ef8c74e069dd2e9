package files

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/errno"
)

// Outline is the common part of the views of all calls of one tool: the paths of the mounts, which paths lie in none of
// them, and trees. It is immutable and safe for concurrent use.
type Outline struct {
	store  *Store  // has no host directories
	mounts []Mount // sorted by guest path
	limits Limits
}

// NewOutline returns the outline of the views of these mounts and limits, for any context values. It does not look at
// the host. It fails with [errno.Invalid] if a mount or a limit is invalid, or if mounts overlap.
func NewOutline(mounts []Mount, limits Limits) (*Outline, error) {
	if limits.OpenFiles < 0 || limits.AddedBytes < 0 {
		return nil, fmt.Errorf("file limits: %w: they must not be negative", errno.Invalid)
	}
	limits.OpenFiles = cmp.Or(limits.OpenFiles, defaultOpenFiles)
	limits.AddedBytes = cmp.Or(limits.AddedBytes, defaultAddedBytes)
	mounts = slices.Clone(mounts)
	for i := range mounts {
		if err := mounts[i].resolve(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(mounts, func(a, b Mount) int { return strings.Compare(a.Guest.String(), b.Guest.String()) })
	if err := overlap(mounts); err != nil {
		return nil, err
	}
	return &Outline{NewStore(nil), mounts, limits}, nil
}

// View returns a view for a program that runs without a call. It answers as the view of every call
// would, with the same receipts and inode numbers, until an operation needs a host directory. That
// operation fails, and [View.Needs] says so: the program must not learn anything from it.
//
// The view has nothing to close.
func (o *Outline) View(ctx context.Context) *View {
	v := &View{ctx: ctx, store: o.store, limits: o.limits}
	for _, m := range o.mounts {
		reserved := v.reserved(m)
		reserved.outlined = m.Tree == nil
		v.mounts = append(v.mounts, reserved)
	}
	v.preopen()
	return v
}

// Needs returns the guest path of the first operation that needed a host directory in a view of an
// [Outline], or "" if there was none.
func (v *View) Needs() string { return v.needs }

// need fails an operation that needs the directory of a mount which is only outlined.
func (p place) need() error {
	if p.view.needs == "" {
		p.view.needs = shown(p.guest)
	}
	return p.err(fmt.Errorf("%w: there is no call yet", errno.NotSupported))
}

// Resume gives the view of a call, which must not have been used, the state of a view of its
// [Outline]: receipts, operations and inode numbers are as if the call had done it all itself. What
// is open in the outline's view is opened again with [View.ReopenDir] and [View.ReopenFile]. The
// outline's view is only read, so that any number of calls may resume it at a time.
func (v *View) Resume(from *View) {
	v.Journal.Continue(&from.Journal, time.Now)
	v.virtualInodes = maps.Clone(from.virtualInodes)
	v.lastInode = from.lastInode
	v.current, v.phase = from.current, from.phase
}

// Restart undoes Resume and closes the reopened files and directories.
func (v *View) Restart() {
	for h := range v.handles {
		_ = h.Close() // directories above the mounts, and trees: there is nothing of the host's
	}
	v.Journal.Reset()
	v.virtualInodes, v.lastInode, v.phase = nil, 0, v.firstPhase()
	for _, m := range v.mounts {
		v.lastInode += m.names()
	}
}

// ReopenDir returns the view's counterpart of a directory that is open in the view that it resumed.
func (v *View) ReopenDir(d *Dir) *Dir {
	if d.preopened {
		for _, preopen := range v.preopens {
			if preopen.Path == d.guest {
				return preopen.Dir
			}
		}
	}
	again := *d
	again.view, again.mount = v, v.counterpart(d.mount)
	v.keep(&again)
	return &again
}

// ReopenFile returns the view's counterpart of a file that is open in the view that it resumed.
func (v *View) ReopenFile(f *File) *File {
	again := *f
	again.place.view, again.place.mount = v, v.counterpart(f.place.mount)
	v.keep(&again)
	return &again
}

func (v *View) counterpart(m *mount) *mount {
	if m == nil {
		return nil
	}
	return v.mountAt(m.guest)
}
