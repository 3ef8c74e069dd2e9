package wasi

import (
	"cmp"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
)

var pathFunctions = []function{
	{"path_create_directory", "iii", createDirectory},
	{"path_filestat_get", "iiiii", pathFilestat},
	{"path_filestat_set_times", "iiiiIIi", pathSetTimes},
	{"path_link", "iiiiiii", link},
	{"path_open", "iiiiiIIii", openPath},
	{"path_readlink", "iiiiii", readlink},
	{"path_remove_directory", "iii", removeDirectory},
	{"path_rename", "iiiiii", rename},
	{"path_symlink", "iiiii", symlink},
	{"path_unlink_file", "iii", unlink},
}

// lookupFollow is the lookupflag to follow a symbolic link in the last element of a path.
const lookupFollow = 1

// location returns a directory, given its descriptor, and the path whose pointer and length are
// parameters i and i+1.
func (c *call) location(directory uint32, i int) (*files.Dir, string, Errno) {
	dir, errno := c.system.directory(directory)
	if errno != Success {
		return nil, "", errno
	}
	path, errno := c.path(i)
	return dir, path, errno
}

func createDirectory(c *call) (Errno, error) {
	dir, path, errno := c.location(c.u32(0), 1)
	if errno != Success {
		return errno, nil
	}
	return errnoOf(dir.Mkdir(path)), nil
}

func pathFilestat(c *call) (Errno, error) {
	dir, path, errno := c.location(c.u32(0), 2)
	if errno != Success {
		return errno, nil
	}
	info, err := dir.Stat(path, c.u32(1)&lookupFollow != 0)
	if err != nil {
		return errnoOf(err), nil
	}
	return c.putFilestat(c.u32(4), info), nil
}

func pathSetTimes(c *call) (Errno, error) {
	dir, path, errno := c.location(c.u32(0), 2)
	if errno != Success {
		return errno, nil
	}
	accessed, modified, errno := c.times(c.u64(4), c.u64(5), c.u32(6))
	if errno != Success {
		return errno, nil
	}
	return errnoOf(dir.SetTimes(path, c.u32(1)&lookupFollow != 0, accessed, modified)), nil
}

func link(c *call) (Errno, error) {
	dir, path, errno := c.location(c.u32(0), 2)
	if errno != Success {
		return errno, nil
	}
	target, newPath, errno := c.location(c.u32(4), 5)
	if errno != Success {
		return errno, nil
	}
	return errnoOf(dir.Link(path, target, newPath, c.u32(1)&lookupFollow != 0)), nil
}

// The oflags of path_open.
const (
	openCreate uint32 = 1 << iota
	openDirectory
	openExclusive
	openTruncate
)

func openPath(c *call) (Errno, error) {
	if device, errno, err := c.device(); device != nil || errno != Success || err != nil {
		if _, ok := c.memory.View(c.u32(8), 4); !ok || device == nil {
			return cmp.Or(errno, EFAULT), err
		}
		return c.putU32(c.u32(8), c.system.add(device)), nil
	}
	dir, path, errno := c.location(c.u32(0), 2)
	if errno != Success {
		return errno, nil
	}
	flags, rights, fdflags := c.u32(4), c.u64(5), uint16(c.u32(7))
	if flags > openCreate|openDirectory|openExclusive|openTruncate || c.u32(7) > 31 {
		return EINVAL, nil
	}
	if flags&openDirectory != 0 && flags&openCreate != 0 {
		return EINVAL, nil
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
		return EFAULT, nil
	}
	file, directory, err := dir.Open(path, options)
	if err != nil {
		return errnoOf(err), nil
	}
	number := c.system.add(&descriptor{
		file: file, dir: directory, number: opened, flags: fdflags,
		mode: openMode{read: options.Read, write: options.Write},
	})
	return c.putU32(c.u32(8), number), nil
}

func readlink(c *call) (Errno, error) {
	dir, path, errno := c.location(c.u32(0), 1)
	if errno != Success {
		return errno, nil
	}
	buffer, ok := c.memory.View(c.u32(3), c.u32(4))
	if !ok {
		return EFAULT, nil
	}
	target, err := dir.Readlink(path)
	if err != nil {
		return errnoOf(err), nil
	}
	return c.putU32(c.u32(5), uint32(copy(buffer, target))), nil
}

func removeDirectory(c *call) (Errno, error) {
	dir, path, errno := c.location(c.u32(0), 1)
	if errno != Success {
		return errno, nil
	}
	return errnoOf(dir.RemoveDir(path)), nil
}

func rename(c *call) (Errno, error) {
	dir, path, errno := c.location(c.u32(0), 1)
	if errno != Success {
		return errno, nil
	}
	target, newPath, errno := c.location(c.u32(3), 4)
	if errno != Success {
		return errno, nil
	}
	return errnoOf(dir.Rename(path, target, newPath)), nil
}

// symlink has its parameters in a different order: the link's target comes first.
func symlink(c *call) (Errno, error) {
	target, errno := c.path(0)
	if errno != Success {
		return errno, nil
	}
	dir, path, errno := c.location(c.u32(2), 3)
	if errno != Success {
		return errno, nil
	}
	return errnoOf(dir.Symlink(target, path)), nil
}

func unlink(c *call) (Errno, error) {
	dir, path, errno := c.location(c.u32(0), 1)
	if errno != Success {
		return errno, nil
	}
	return errnoOf(dir.Unlink(path)), nil
}
