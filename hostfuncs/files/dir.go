package files

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/manifests/permission"
)

// maxEntries is how many names one directory may hold to be listed: a listing is kept in
// the host's memory.
const maxEntries = 10_000

// Dir is an open directory: one above the mounts, a mount, or a directory below one.
// Paths are relative to it and cannot leave it; above the mounts they lead into the
// mounts.
type Dir struct {
	view      *View
	mount     *mount   // nil above the mounts
	root      *os.Root // nil above the mounts
	guest     string   // where it was opened
	rel       string   // the same, relative to the mount; empty where that is not known
	preopened bool
	closed    bool
}

// Close closes the directory; a closed directory, or one of a closed view, is
// [ErrBadHandle].
func (d *Dir) Close() error {
	if d.closed || d.view.closed {
		return &Error{Op: "close", Path: shown(d.guest), Err: ErrBadHandle}
	}
	d.closed = true
	delete(d.view.handles, d)
	if d.preopened || d.root == nil {
		return nil // the view owns the mounts' roots
	}
	return d.view.fail("close", d.guest, d.root.Close())
}

// Stat describes a file; "." is the directory itself. With follow it describes what a
// symbolic link leads to.
func (d *Dir) Stat(name string, follow bool) (info Info, err error) {
	o := d.view.begin(opStat)
	defer func() { o.end(err) }()
	p, err := d.locate("stat", name, false)
	if err != nil {
		return Info{}, err
	}
	if p.virtual() {
		return p.view.describeVirtual(p.guest), nil
	}
	found, err := p.stat(follow)
	if err != nil {
		return Info{}, err
	}
	info = p.view.describe(found)
	if info.Kind == Symlink {
		// The size is the target's length, which is the host's to know like the target.
		if target, err := p.root.Readlink(p.path); err != nil || !descends(target) {
			info.Size = 0
		}
	}
	return info, nil
}

func (p place) stat(follow bool) (os.FileInfo, error) {
	look := p.root.Lstat
	if follow {
		look = p.root.Stat
	}
	info, err := look(p.path)
	return info, p.fail(err)
}

// SetTimes sets a file's times; nil leaves one as it is. The times of a symbolic link
// itself cannot be set: without follow, one is [ErrNotSupported].
func (d *Dir) SetTimes(name string, follow bool, atime, mtime *time.Time) (err error) {
	o := d.view.begin(opTimes)
	defer func() { o.end(err) }()
	p, err := d.locate("set times", name, true)
	if err != nil {
		return err
	}
	return p.change(func() error {
		info, err := p.stat(follow)
		if err != nil {
			return err
		}
		if kindOf(info.Mode()) == Symlink {
			return p.err(ErrNotSupported)
		}
		if atime == nil && mtime == nil {
			return nil
		}
		return p.root.Chtimes(p.path, orZero(atime), orZero(mtime))
	})
}

// orZero turns "leave it" into what package os takes for that.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Readlink returns a symbolic link's target. A target that is absolute, or that climbs
// and leads nowhere inside the directory, is [ErrDenied]: it would tell the guest
// about the host.
func (d *Dir) Readlink(name string) (target string, err error) {
	o := d.view.begin(opReadlink)
	defer func() { o.end(err) }()
	p, err := d.locate("readlink", name, false)
	if err != nil {
		return "", err
	}
	if p.virtual() {
		return "", p.err(ErrInvalid)
	}
	target, err = p.root.Readlink(p.path)
	if err != nil {
		return "", p.fail(err)
	}
	if descends(target) {
		return target, nil
	}
	if path.IsAbs(target) {
		return "", p.deny(ruleReadlink)
	}
	if _, err := p.root.Stat(p.path); err != nil {
		return "", p.deny(ruleReadlink)
	}
	return target, nil
}

// descends reports whether a link's target can only lead further down.
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

// ReadDir lists the directory as it is now, sorted by name, without "." and "..". A
// directory of more than 10,000 names is [ErrTooLarge].
func (d *Dir) ReadDir() (entries []Entry, err error) {
	o := d.view.begin(opList)
	defer func() { o.end(err) }()
	p, err := d.locate("read directory", ".", false)
	if err != nil {
		return nil, err
	}
	if p.virtual() {
		return p.view.readVirtual(d)
	}
	names, err := readNames(p.view.ctx, p.root, maxEntries)
	if errors.Is(err, ErrTooLarge) {
		return nil, p.err(ErrTooLarge)
	}
	if err != nil {
		return nil, p.fail(err)
	}
	slices.Sort(names)
	entries = make([]Entry, 0, len(names))
	for _, name := range names {
		if err := p.view.ctx.Err(); err != nil {
			return nil, p.fail(err)
		}
		info, err := p.root.Lstat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, p.fail(err)
		}
		entries = append(entries, Entry{name, kindOf(info.Mode()), p.view.inode(info)})
	}
	return entries, nil
}

func (v *View) readVirtual(d *Dir) ([]Entry, error) {
	var entries []Entry
	for _, name := range v.children(d.guest) {
		guest := path.Join(d.guest, name)
		entry := Entry{Name: name, Kind: Directory}
		if m := v.mountAt(guest); m != nil {
			info, err := m.root.Stat(".")
			if err != nil {
				return nil, v.fail("read directory", guest, err)
			}
			entry.Inode = v.inode(info)
		} else {
			entry.Inode = v.virtualInode(guest)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// Sync waits until the directory's names are on the disk, where the system can say
// so.
func (d *Dir) Sync() (err error) {
	o := d.view.begin(opSync)
	defer func() { o.end(err) }()
	p, err := d.locate("sync", ".", false)
	if err != nil || p.virtual() {
		return err
	}
	return p.fail(p.view.sync(func() error {
		f, err := p.root.Open(".")
		if err != nil {
			return err
		}
		return errors.Join(syncDirectory(f), f.Close())
	}))
}
