package wasi

import (
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
)

var pathFunctions = []function{
	{"path_create_directory", "iii",
		onPath(1, func(_ *call, dir *files.Dir, path string) error { return dir.Mkdir(path) })},
	{"path_filestat_get", "iiiii", onPath(2, pathFilestat)},
	{"path_filestat_set_times", "iiiiIIi", onPath(2, pathSetTimes)},
	{"path_link", "iiiiiii", onPath(2, link)},
	{"path_open", "iiiiiIIii", openPath},
	{"path_readlink", "iiiiii", onPath(1, readlink)},
	{"path_remove_directory", "iii",
		onPath(1, func(_ *call, dir *files.Dir, path string) error { return dir.RemoveDir(path) })},
	{"path_rename", "iiiiii", onPath(1, rename)},
	{"path_symlink", "iiiii", symlink},
	{"path_unlink_file", "iii", onPath(1, func(_ *call, dir *files.Dir, path string) error { return dir.Unlink(path) })},
}

// lookupFollow is the lookupflag to follow a symbolic link in the last element of a path.
const lookupFollow = 1

// location returns a directory, given its descriptor, and the path whose pointer and length are
// parameters i and i+1.
func (c *call) location(directory uint32, i int) (*files.Dir, string, error) {
	dir, err := c.system.directory(directory)
	if err != nil {
		return nil, "", err
	}
	path, err := c.path(i)
	return dir, path, err
}

// onPath returns a handler for a function about a path in a directory. The directory's descriptor is parameter 0, and
// the path's pointer and length are parameters i and i+1.
func onPath(i int, do func(c *call, dir *files.Dir, path string) error) handler {
	return func(c *call) error {
		dir, path, err := c.location(c.u32(0), i)
		if err != nil {
			return err
		}
		return errnoOf(do(c, dir, path))
	}
}

func pathFilestat(c *call, dir *files.Dir, path string) error {
	info, err := dir.Stat(path, c.u32(1)&lookupFollow != 0)
	if err != nil {
		return err
	}
	return c.putFilestat(c.u32(4), info)
}

func pathSetTimes(c *call, dir *files.Dir, path string) error {
	accessed, modified, err := c.times(c.u64(4), c.u64(5), c.u32(6))
	if err != nil {
		return err
	}
	return dir.SetTimes(path, c.u32(1)&lookupFollow != 0, accessed, modified)
}

func link(c *call, dir *files.Dir, path string) error {
	target, newPath, err := c.location(c.u32(4), 5)
	if err != nil {
		return err
	}
	return dir.Link(path, target, newPath, c.u32(1)&lookupFollow != 0)
}

// The oflags of path_open.
const (
	openCreate uint32 = 1 << iota
	openDirectory
	openExclusive
	openTruncate
)

func openPath(c *call) error {
	device, err := c.device()
	if err != nil {
		return err
	}
	if device != nil {
		if _, ok := c.memory.View(c.u32(8), 4); !ok {
			return EFAULT
		}
		return c.putU32(c.u32(8), c.system.add(device))
	}
	dir, path, err := c.location(c.u32(0), 2)
	if err != nil {
		return err
	}
	flags, rights, fdflags := c.u32(4), c.u64(5), uint16(c.u32(7))
	if flags > openCreate|openDirectory|openExclusive|openTruncate || c.u32(7) > 31 {
		return EINVAL
	}
	if flags&openDirectory != 0 && flags&openCreate != 0 {
		return EINVAL
	}
	options := guestfiles.OpenOptions{
		Read:      rights&rightFDRead != 0,
		Write:     rights&rightFDWrite != 0,
		Append:    fdflags&flagAppend != 0,
		Create:    flags&openCreate != 0,
		Exclusive: flags&openExclusive != 0,
		Truncate:  flags&openTruncate != 0,
		Directory: flags&openDirectory != 0,
		NoFollow:  c.u32(1)&lookupFollow == 0,
	}
	// Check the result pointer before opening: a file whose number the guest never gets would stay
	// open until the end of the call.
	if _, ok := c.memory.View(c.u32(8), 4); !ok {
		return EFAULT
	}
	file, directory, err := dir.Open(path, options)
	if err != nil {
		return errnoOf(err)
	}
	number := c.system.add(&descriptor{
		file: file, dir: directory, number: opened, flags: fdflags,
		mode: openMode{read: options.Read, write: options.Write},
	})
	return c.putU32(c.u32(8), number)
}

func readlink(c *call, dir *files.Dir, path string) error {
	buffer, ok := c.memory.View(c.u32(3), c.u32(4))
	if !ok {
		return EFAULT
	}
	target, err := dir.Readlink(path)
	if err != nil {
		return err
	}
	return c.putU32(c.u32(5), uint32(copy(buffer, target)))
}

func rename(c *call, dir *files.Dir, path string) error {
	target, newPath, err := c.location(c.u32(3), 4)
	if err != nil {
		return err
	}
	return dir.Rename(path, target, newPath)
}

// symlink has its parameters in a different order: the link's target comes first.
func symlink(c *call) error {
	target, err := c.path(0)
	if err != nil {
		return err
	}
	dir, path, err := c.location(c.u32(2), 3)
	if err != nil {
		return err
	}
	return errnoOf(dir.Symlink(target, path))
}
