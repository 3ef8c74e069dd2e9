package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// Mkdir creates a directory. It fails with [errno.Exist] if the name exists, even where nothing may
// change: programs create directories to make sure that they exist, and that needs no receipt.
func (d *Dir) Mkdir(name string) (err error) {
	defer d.view.begin(opMkdir)(&err)
	p, err := d.find("mkdir", name, true)
	if err != nil {
		return err
	}
	if p.exists() {
		return p.err(errno.Exist)
	}
	if err := p.mayChange(); err != nil {
		return err
	}
	return p.change(func() error {
		return p.grow(0, 1, func() error { return p.root.Mkdir(p.path, 0o777) })
	})
}

func (p place) exists() bool {
	if p.virtual() {
		return true
	}
	switch {
	case p.mount.Tree != nil:
		return p.node != nil
	case p.root == nil:
		return isDots(p.path)
	}
	_, err := p.root.Lstat(p.path)
	return err == nil
}

// RemoveDir removes an empty directory. It fails with [errno.NotDir] for anything but a directory.
func (d *Dir) RemoveDir(name string) error {
	return d.remove("rmdir", name, func(p place, info os.FileInfo) error {
		if !info.IsDir() {
			return p.err(errno.NotDir)
		}
		return nil
	})
}

// Unlink removes a name. It fails with [errno.IsDir] for a directory.
func (d *Dir) Unlink(name string) error {
	return d.remove("unlink", name, func(p place, info os.FileInfo) error {
		switch {
		case info.IsDir():
			return p.err(errno.IsDir)
		case p.slashed:
			return p.err(errno.NotDir)
		}
		return nil
	})
}

// remove removes a name unless check fails for the file or directory with that name.
func (d *Dir) remove(op, name string, check func(p place, info os.FileInfo) error) error {
	return d.operate(opRemove, op, name, true, func(p place) error {
		p.trim()
		return p.change(func() error {
			info, err := p.stat(false)
			if err != nil {
				return err
			}
			if err := check(p, info); err != nil {
				return err
			}
			if err := p.root.Remove(p.path); err != nil {
				return err
			}
			p.removed(info)
			return nil
		})
	})
}

// Symlink creates a symbolic link. The target must be relative and must not contain "..". Such a
// link still leads down after a directory above it is moved, so it never leads programs on the
// host, which follow links without a root, out of the directory.
func (d *Dir) Symlink(target, name string) error {
	return d.operate(opSymlink, "symlink", name, true, func(p place) error {
		if !descends(target) {
			return p.deny(ruleTarget)
		}
		if sentinel := guestfiles.CheckPath(target); sentinel != nil {
			return p.err(sentinel)
		}
		if hasManyElements(target) {
			return p.err(errno.NameTooLong)
		}
		return p.change(func() error {
			return p.grow(manifests.Bytes(len(target)), 1, func() error { return p.root.Symlink(target, p.path) })
		})
	})
}

// grow runs an operation by which the directory grows. The caller must hold the tracker's turn.
func (p place) grow(bytes manifests.Bytes, files int, operation func() error) error {
	if err := p.room(bytes, files); err != nil {
		return err
	}
	if err := operation(); err != nil {
		return err
	}
	p.grew(bytes, files)
	return nil
}

// Link gives a file another name in the same mount. If follow is set, it follows a symbolic link.
// It fails with [errno.CrossDevice] for another mount.
func (d *Dir) Link(oldName string, target *Dir, newName string, follow bool) (err error) {
	defer d.view.begin(opLink)(&err)
	from, to, err := d.locatePair("link", oldName, target, newName)
	if err != nil {
		return err
	}
	if to.slashed {
		return to.err(errno.NotExist) // only a directory can have a name with trailing slashes
	}
	return to.change(func() error {
		if follow {
			if err := from.followLink(); err != nil {
				return err
			}
		}
		info, err := from.stat(false)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() && !isLink(info.Mode()) {
			return from.deny(ruleLinkKind)
		}
		if from.slashed {
			return from.err(errno.NotDir)
		}
		root, oldPath, newPath, err := common(from, to)
		if err != nil {
			return err
		}
		return to.grow(0, 1, func() error { return root.Link(oldPath, newPath) })
	})
}

// followLink replaces a place that is a link by the link's target. os.Root resolves each step, so none leads outside.
func (p *place) followLink() error {
	for range maxLinks {
		if err := p.view.ctx.Err(); err != nil {
			return p.fail(err)
		}
		info, err := p.stat(false)
		if err != nil {
			return err
		}
		if !isLink(info.Mode()) {
			return nil
		}
		target, err := p.root.Readlink(p.path)
		if err != nil {
			return err
		}
		if !validTarget(target) {
			return p.deny(ruleLeaves)
		}
		p.path = sibling(p.path, target)
		if p.rel != "" {
			p.rel = sibling(p.rel, target)
		}
		p.trim()
	}
	return p.err(errno.Loop)
}

// Rename moves a name to another place in the same mount. It replaces a file or an empty directory
// there. It fails with [errno.CrossDevice] for another mount.
func (d *Dir) Rename(oldName string, target *Dir, newName string) (err error) {
	defer d.view.begin(opRename)(&err)
	from, to, err := d.locatePair("rename", oldName, target, newName)
	if err != nil {
		return err
	}
	return to.change(func() error {
		defer to.mount.tracker.renamed()
		info, err := from.stat(false)
		if err != nil {
			return err
		}
		if (from.slashed || to.slashed) && !info.IsDir() {
			return from.err(errno.NotDir)
		}
		root, oldPath, newPath, err := common(from, to)
		if err != nil {
			return err
		}
		over, err := to.root.Lstat(to.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return root.Rename(oldPath, newPath)
		case err != nil:
			return err
		case os.SameFile(info, over) && info.IsDir() && path.Base(oldPath) == path.Base(newPath):
			return nil // os.Root fails to rename a directory to itself, but not to another spelling of its name
		case os.SameFile(info, over):
			// For two names of one file, POSIX requires a rename to do nothing.
			return root.Rename(oldPath, newPath)
		case over.IsDir():
			return to.replaceDirectory(root, oldPath, newPath, info, over)
		case info.IsDir():
			return to.err(errno.NotDir)
		}
		if err := root.Rename(oldPath, newPath); err != nil {
			return err
		}
		to.removed(over)
		return nil
	})
}

// replaceDirectory renames a directory over an empty one. os.Root fails for that, like os.Rename,
// so the empty one is removed first and restored if the rename fails. Other calls wait for the
// tracker and do not see the intermediate state.
func (p place) replaceDirectory(root *os.Root, oldPath, newPath string, info, over os.FileInfo) error {
	if !info.IsDir() {
		return p.err(errno.IsDir)
	}
	if err := root.Remove(newPath); err != nil {
		return err
	}
	if err := root.Rename(oldPath, newPath); err != nil {
		return errors.Join(err, root.Mkdir(newPath, over.Mode().Perm()))
	}
	p.removed(over)
	return nil
}

func (d *Dir) locatePair(op, oldName string, target *Dir, newName string) (from, to place, err error) {
	if target.view != d.view {
		d.view.name(d.guest, d.mount)
		return from, to, &Error{Op: op, Path: shown(d.guest), Err: errno.BadHandle}
	}
	if from, err = d.locate(op, oldName, true); err != nil {
		return from, to, err
	}
	if to, err = target.find(op, newName, true); err != nil {
		return from, to, err
	}
	if err = to.mayChange(); err != nil {
		return from, to, err
	}
	if from.mount != to.mount {
		return from, to, to.err(errno.CrossDevice)
	}
	for _, p := range []*place{&from, &to} {
		p.trim()
		if base := path.Base(p.path); base == "." || base == ".." {
			return from, to, p.err(errno.Busy)
		}
	}
	return from, to, nil
}

// common returns a root for both places, and their paths in it. For two directory handles it is the mount's root, if
// each path leads to the same directory from there as from its handle.
func common(from, to place) (root *os.Root, oldPath, newPath string, err error) {
	if from.root == to.root {
		return from.root, from.path, to.path, nil
	}
	for _, p := range []place{from, to} {
		if p.rel == "" {
			return nil, "", "", p.err(errno.NotSupported)
		}
		here, err := p.root.Stat(parent(p.path))
		if err != nil {
			return nil, "", "", p.fail(err)
		}
		there, err := p.mount.root.Stat(parent(p.rel))
		if err != nil || !os.SameFile(here, there) {
			// The directory was moved after it was opened.
			return nil, "", "", p.err(errno.NotSupported)
		}
	}
	return from.mount.root, from.rel, to.rel, nil
}

// parent returns the directory part of a path without trailing slashes. It does not resolve the path.
func parent(name string) string {
	dir := name[:strings.LastIndexByte(name, '/')+1]
	if dir == "" {
		return "."
	}
	return dir + "."
}

// sibling replaces the last element of a path without trailing slashes.
func sibling(name, target string) string { return name[:strings.LastIndexByte(name, '/')+1] + target }

// trim removes trailing slashes, with which an operation would follow a symbolic link, and sets slashed.
func (p *place) trim() {
	trimmed := strings.TrimRight(p.path, "/")
	p.slashed = trimmed != p.path
	p.path, p.rel = trimmed, strings.TrimRight(p.rel, "/")
}
