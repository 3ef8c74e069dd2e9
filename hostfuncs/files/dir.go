package files

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/permission"
)

// Dir is an open directory: one above the mounts, a mount, or one below a mount. Paths are relative
// to it and cannot leave it. From a directory above the mounts, paths lead into the mounts.
type Dir struct {
	view      *View
	mount     *mount           // nil above the mounts
	root      *os.Root         // nil above the mounts, in a tree, and if it was missing when it was opened
	node      *guestfiles.Node // nil outside of trees
	guest     string           // the path where it was opened
	rel       string           // the same path relative to the mount; empty if not known
	preopened bool
	closed    bool
}

// Close closes the directory. It fails with [errno.BadHandle] if the directory or its view is closed.
func (d *Dir) Close() error {
	if d.closed || d.view.closed {
		return &Error{Op: "close", Path: shown(d.guest), Err: errno.BadHandle}
	}
	d.closed = true
	delete(d.view.handles, d)
	if d.preopened || d.root == nil {
		return nil // the view owns the mounts' roots
	}
	return d.view.fail("close", d.guest, d.root.Close())
}

// Stat describes a file. "." is the directory itself. If follow is set, Stat follows a symbolic link.
func (d *Dir) Stat(name string, follow bool) (info guestfiles.Info, err error) {
	err = d.operate(opStat, "stat", name, false, func(p place) error {
		if p.virtual() {
			info = p.view.describeVirtual(p.guest)
			return nil
		}
		if p.node != nil {
			info = p.node.Info(p.mount.inode)
			return nil
		}
		found, err := p.stat(follow)
		if err != nil {
			return err
		}
		info = p.view.describe(found)
		if isLink(info.Kind) {
			// The size is the target's length. Hide it where Readlink may deny the target.
			if target, err := p.root.Readlink(p.path); err != nil || !descends(target) {
				info.Size = 0
			}
		}
		return nil
	})
	return info, err
}

func (p place) stat(follow bool) (os.FileInfo, error) {
	look := p.root.Lstat
	if follow {
		look = p.root.Stat
	}
	info, err := look(p.path)
	return info, p.fail(err)
}

// SetTimes sets a file's times. A nil time is not changed, and one that is not between the years 1678 and 2262 is
// invalid. Without follow, it sets the times of a symbolic link itself; on Windows, it fails with [errno.NotSupported]
// for a link.
func (d *Dir) SetTimes(name string, follow bool, atime, mtime *time.Time) error {
	return d.operate(opTimes, "set times", name, true, func(p place) error {
		return p.change(func() error {
			info, err := p.stat(follow)
			switch {
			case err != nil:
				return err
			case atime == nil && mtime == nil:
				return nil
			case !canStore(atime) || !canStore(mtime):
				return p.err(errno.Invalid)
			case isLink(info.Mode()):
				return p.setLinkTimes(info, atime, mtime)
			}
			return p.root.Chtimes(p.path, orZero(atime), orZero(mtime))
		})
	})
}

// canStore reports whether the system's 64-bit nanoseconds can hold a time: a later one would wrap to an early one.
func canStore(t *time.Time) bool { return t == nil || time.Unix(0, t.UnixNano()).Equal(*t) }

// setLinkTimes sets the times of a place that is a symbolic link. os.Root cannot, so it opens the
// link's directory, in which the name leads nowhere else.
func (p place) setLinkTimes(info os.FileInfo, atime, mtime *time.Time) error {
	accessed, modified := orKept(info, atime, mtime)
	directory, err := p.root.OpenFile(parent(p.path), openFlags|os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(setLinkTimes(directory, path.Base(p.path), accessed, modified), directory.Close())
}

// orZero converts nil to the zero time, which package os leaves unchanged.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Readlink returns a symbolic link's target. If the target is absolute, or climbs and does not lead to a file in the
// directory, it fails with [errno.Denied], since the target would reveal something about the host.
func (d *Dir) Readlink(name string) (target string, err error) {
	err = d.operate(opReadlink, "readlink", name, false, func(p place) error {
		if p.virtual() || p.node != nil {
			return p.err(errno.Invalid)
		}
		found, err := p.root.Readlink(p.path)
		if err != nil {
			return p.fail(err)
		}
		if !descends(found) {
			if path.IsAbs(found) {
				return p.deny(ruleReadlink)
			}
			if _, err := p.root.Stat(p.path); err != nil {
				return p.deny(ruleReadlink)
			}
		}
		target = found
		return nil
	})
	return target, err
}

// descends reports whether a link's target can only lead down.
func descends(target string) bool {
	if target == "" || strings.HasPrefix(target, "/") {
		return false
	}
	for element := range strings.SplitSeq(target, "/") {
		if element == ".." || !permission.IsElement(element) {
			return false
		}
	}
	return true
}

// ReadDir lists the directory, sorted by name and without "." and "..". It fails with [errno.TooLarge]
// if there are more than 10,000 names.
func (d *Dir) ReadDir() (entries []guestfiles.Entry, err error) {
	err = d.operate(opList, "read directory", ".", false, func(p place) error {
		switch {
		case p.virtual():
			entries = p.view.readVirtual(d)
		case p.node != nil:
			entries = p.node.Entries(p.mount.inode)
		default:
			entries, err = p.readDir()
		}
		return p.fail(err)
	})
	return entries, err
}

func (p place) readDir() ([]guestfiles.Entry, error) {
	names, err := readNames(p.view.ctx, p.root, guestfiles.MaxEntries)
	if errors.Is(err, errno.TooLarge) {
		return nil, p.err(errno.TooLarge)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	entries := make([]guestfiles.Entry, 0, len(names))
	for _, name := range names {
		if err := p.view.ctx.Err(); err != nil {
			return nil, err
		}
		info, err := p.root.Lstat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed concurrently
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, guestfiles.Entry{Name: name, Kind: info.Mode().Type(), Inode: p.view.inode(info)})
	}
	return entries, nil
}

// readVirtual lists a directory above the mounts, without looking at the host.
func (v *View) readVirtual(d *Dir) []guestfiles.Entry {
	var entries []guestfiles.Entry
	for _, name := range v.children(d.guest) {
		guest := path.Join(d.guest, name)
		entries = append(entries, guestfiles.Entry{Name: name, Kind: os.ModeDir, Inode: v.virtualInode(guest)})
	}
	return entries
}
