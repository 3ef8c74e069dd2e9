package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
)

// errChanged reports that a path changed between the check and the open.
var errChanged = errors.New("the file changed while it was opened")

// maxTries is the number of attempts to open a path that other programs keep changing. maxLinks is
// the number of symbolic links to follow, as in os.Root.
const (
	maxTries = 8
	maxLinks = 8
)

// Open opens a regular file or a directory, and returns one of the two. It opens nothing else. The file that was
// checked is the one that is opened: if the path keeps changing in between, Open fails with [errno.Busy].
func (d *Dir) Open(name string, o guestfiles.OpenOptions) (file *File, opened *Dir, err error) {
	defer d.view.begin(opOpen)(&err)
	p, err := d.locate("open", name, o.Changes())
	if err != nil {
		return nil, nil, err
	}
	if len(p.view.handles) >= p.view.limits.OpenFiles {
		return nil, nil, p.err(errno.TooManyOpen)
	}
	switch {
	case o.Create && o.Directory:
		return nil, nil, p.err(errno.Invalid)
	case o.Create && strings.HasSuffix(p.path, "/"):
		return nil, nil, p.err(errno.IsDir) // open never creates a directory
	}
	if p.virtual() {
		dir := &Dir{view: p.view, mount: p.view.mountAt(p.guest), guest: p.guest, rel: "."}
		p.view.keep(dir)
		return nil, dir, nil
	}
	if p.node != nil {
		return p.openNode(o)
	}
	if o.Changes() {
		if err := p.enter(); err != nil {
			return nil, nil, err
		}
		defer p.mount.tracker.leave()
	} else {
		if err := p.mount.tracker.take(p.view.ctx); err != nil {
			return nil, nil, p.fail(err)
		}
		defer p.mount.tracker.give()
	}
	for range maxTries {
		f, dir, err := p.openOnce(o)
		if !errors.Is(err, errChanged) {
			return f, dir, p.fail(err)
		}
	}
	return nil, nil, p.err(errno.Busy)
}

// openOnce checks the path and opens it. The caller must hold the tracker's turn.
func (p place) openOnce(o guestfiles.OpenOptions) (*File, *Dir, error) {
	found, err := p.root.Lstat(p.path)
	if errors.Is(err, fs.ErrNotExist) && o.Create {
		return p.createFile(o, os.O_EXCL)
	}
	if err != nil {
		return nil, nil, err
	}
	if o.Create && o.Exclusive {
		return nil, nil, p.err(errno.Exist)
	}
	if err := p.view.ctx.Err(); err != nil { // each look at a path with many elements takes time
		return nil, nil, err
	}
	if isLink(found.Mode()) {
		if o.NoFollow {
			return nil, nil, p.err(errno.Loop)
		}
		found, err = p.root.Stat(p.path)
		if errors.Is(err, fs.ErrNotExist) && o.Create {
			return p.createFile(o, 0) // through a dangling link
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err := p.view.ctx.Err(); err != nil {
		return nil, nil, err
	}
	switch found.Mode().Type() {
	case fs.ModeDir:
		if o.Write || o.Truncate || o.Create {
			return nil, nil, p.err(errno.IsDir)
		}
		return p.openDir(found)
	case 0:
		if o.Directory {
			return nil, nil, p.err(errno.NotDir)
		}
		return p.openFile(o, found)
	default:
		if o.Directory {
			return nil, nil, p.err(errno.NotDir)
		}
		return nil, nil, p.deny(ruleSpecial)
	}
}

// accessOf returns the flags with which the host opens a file. To truncate the file through its
// handle, the host must open it for writing, even if the guest does not.
func accessOf(o guestfiles.OpenOptions) int {
	switch {
	case !o.Write && !o.Truncate:
		return os.O_RDONLY
	case o.Read:
		return os.O_RDWR
	default:
		return os.O_WRONLY
	}
}

func (p place) createFile(o guestfiles.OpenOptions, exclusive int) (*File, *Dir, error) {
	if err := p.room(0, 1); err != nil {
		return nil, nil, err
	}
	f, err := p.root.OpenFile(p.path, openFlags|accessOf(o)|os.O_CREATE|exclusive, 0o666)
	if exclusive != 0 && errors.Is(err, fs.ErrExist) {
		return nil, nil, errChanged
	}
	if err != nil {
		return nil, nil, err
	}
	p.grew(0, 1)
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, nil, errChanged
	}
	return p.keepFile(f, info, o), nil, nil
}

// openFile opens a regular file. It truncates through the handle rather than on open, so that
// nothing is truncated before the opened file has been checked.
func (p place) openFile(o guestfiles.OpenOptions, found os.FileInfo) (*File, *Dir, error) {
	f, err := p.root.OpenFile(p.path, openFlags|accessOf(o), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errChanged
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if !os.SameFile(found, info) || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, nil, errChanged
	}
	if o.Truncate && info.Size() > 0 {
		if err := p.cutTo(f, info.Size(), 0); err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
	}
	return p.keepFile(f, info, o), nil, nil
}

func (p place) keepFile(f *os.File, info os.FileInfo, o guestfiles.OpenOptions) *File {
	file := &File{
		place: p, host: f, identity: info,
		readable: o.Read, writable: o.Write, append: o.Append, listed: p.view.listing(),
	}
	p.mount.tracker.opened(info, f)
	p.view.keep(file)
	return file
}

func (p place) openDir(found os.FileInfo) (*File, *Dir, error) {
	root, err := openDirectory(p.root, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errChanged
	}
	if err != nil {
		return nil, nil, err
	}
	if info, err := root.Stat("."); err != nil || !os.SameFile(found, info) {
		_ = root.Close()
		return nil, nil, errors.Join(err, errChanged)
	}
	return nil, p.keepDir(Dir{root: root}), nil
}

// keepDir completes and registers an opened directory.
func (p place) keepDir(dir Dir) *Dir {
	dir.view, dir.mount, dir.guest, dir.rel = p.view, p.mount, p.guest, p.rel
	if len(dir.guest) > guestfiles.MaxPath {
		dir.guest = p.mount.guest + "/…"
	}
	p.view.keep(&dir)
	return &dir
}

// openNode opens the file or directory at a place in a tree.
func (p place) openNode(o guestfiles.OpenOptions) (*File, *Dir, error) {
	if p.node.IsDir() {
		return nil, p.keepDir(Dir{node: p.node}), nil
	}
	if o.Directory {
		return nil, nil, p.err(errno.NotDir)
	}
	file := &File{place: p, readable: o.Read, listed: p.view.listing()}
	p.view.keep(file)
	return file, nil, nil
}
