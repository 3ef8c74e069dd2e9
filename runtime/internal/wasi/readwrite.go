package wasi

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
)

var readWriteFunctions = []function{
	{"fd_pread", "iiiIi", pread},
	{"fd_pwrite", "iiiIi", pwrite},
	{"fd_read", "iiii", readDescriptor},
	{"fd_readdir", "iiiIi", readdir},
	{"fd_seek", "iIii", seek},
	{"fd_tell", "ii", tell},
	{"fd_write", "iiii", writeDescriptor},
}

// finish writes how many bytes were moved. If any were, an errno is dropped; the guest sees the
// failure at its next call, as on other systems.
func (c *call) finish(pointer, total uint32, errno Errno, err error) (Errno, error) {
	if err != nil || errno != Success && total == 0 {
		return errno, err
	}
	return c.putU32(pointer, total), nil
}

func readDescriptor(c *call) (Errno, error) {
	d, errno := c.system.descriptor(c.u32(0))
	switch {
	case errno != Success:
		return errno, nil
	case d.dir != nil:
		return EISDIR, nil
	case !d.stdin && d.file == nil && d.device == nil:
		return EBADF, nil
	case d.stdin && c.system.Starting:
		return Success, &StartError{Function: "fd_read"}
	}
	if begins := c.system.OnInput; d.stdin && begins != nil {
		c.system.OnInput = nil
		begins()
	}
	total, errno, err := c.vectors(d.file != nil, func(piece []byte) (int, Errno, error) {
		if d.stdin {
			n := copy(piece, c.system.Stdin)
			c.system.Stdin = c.system.Stdin[n:]
			return n, Success, nil
		}
		if d.device != nil {
			return d.device.read(c, piece)
		}
		return fill(d.file.Read(piece))
	})
	return c.finish(c.u32(3), total, errno, err)
}

// fill converts the result of a read. The end of a file is not an error in WASI.
func fill(n int, err error) (int, Errno, error) {
	if errors.Is(err, io.EOF) {
		return n, Success, nil
	}
	return n, errnoOf(err), nil
}

func pread(c *call) (Errno, error) {
	file, offset, errno := c.positionedFile()
	if errno != Success {
		return errno, nil
	}
	total, errno, err := c.vectors(true, func(piece []byte) (int, Errno, error) {
		n, errno, err := fill(file.ReadAt(piece, offset))
		offset += int64(n)
		return n, errno, err
	})
	return c.finish(c.u32(4), total, errno, err)
}

// positionedFile returns the file and the offset that fd_pread and fd_pwrite name.
func (c *call) positionedFile() (*files.File, int64, Errno) {
	file, errno := c.system.file(c.u32(0))
	if errno != Success {
		return nil, 0, errno
	}
	offset := int64(c.u64(3))
	if offset < 0 {
		return nil, 0, EINVAL
	}
	return file, offset, Success
}

func writeDescriptor(c *call) (Errno, error) {
	d, errno := c.system.descriptor(c.u32(0))
	switch {
	case errno != Success:
		return errno, nil
	case d.dir != nil:
		return EISDIR, nil
	case c.system.Starting && (d.number == 1 || d.number == 2): // the output, which only calls have
		return Success, &StartError{Function: "fd_write"}
	case d.output == nil && d.file == nil && d.device == nil:
		return EBADF, nil
	}
	total, errno, err := c.vectors(d.file != nil, func(piece []byte) (int, Errno, error) {
		if d.output != nil {
			_, err := d.output.Write(piece)
			return len(piece), Success, err
		}
		if d.device != nil {
			return d.device.write(c, piece)
		}
		n, err := d.file.Write(piece)
		return n, errnoOf(err), nil
	})
	if errno == Success && err == nil && d.file != nil && d.flags&flagsSynchronous != 0 {
		errno = errnoOf(d.file.Sync())
		if errno != Success {
			return errno, nil
		}
	}
	return c.finish(c.u32(3), total, errno, err)
}

func pwrite(c *call) (Errno, error) {
	file, offset, errno := c.positionedFile()
	if errno != Success {
		return errno, nil
	}
	total, errno, err := c.vectors(true, func(piece []byte) (int, Errno, error) {
		n, err := file.WriteAt(piece, offset)
		offset += int64(n)
		return n, errnoOf(err), nil
	})
	return c.finish(c.u32(4), total, errno, err)
}

func seek(c *call) (Errno, error) {
	file, errno := c.system.file(c.u32(0))
	if errno != Success {
		return errno, nil
	}
	whence := c.u32(2)
	if whence > 2 { // set, cur and end have io.Seeker's numbers
		return EINVAL, nil
	}
	if c.draft {
		whence = [...]uint32{io.SeekCurrent, io.SeekEnd, io.SeekStart}[whence]
	}
	position, err := file.Seek(int64(c.u64(1)), int(whence))
	if err != nil {
		return errnoOf(err), nil
	}
	return c.putU64(c.u32(3), uint64(position)), nil
}

func tell(c *call) (Errno, error) {
	file, errno := c.system.file(c.u32(0))
	if errno != Success {
		return errno, nil
	}
	position, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return errnoOf(err), nil
	}
	return c.putU64(c.u32(1), uint64(position)), nil
}

const direntSize = 24

// readdir writes the entries from a cookie on. A cookie is an index into the listing; cookie 0
// takes a new listing. Only one listing is kept for all descriptors, so that a guest cannot fill
// the host's memory with listings; switching to another directory lists that one anew. The end of
// the buffer may cut off the last entry, which tells the guest that more entries follow.
func readdir(c *call) (Errno, error) {
	d, errno := c.system.descriptor(c.u32(0))
	switch {
	case errno != Success:
		return errno, nil
	case d.dir == nil:
		return ENOTDIR, nil
	}
	buffer, ok := c.memory.View(c.u32(1), c.u32(2))
	if !ok {
		return EFAULT, nil
	}
	cookie := c.u64(3)
	if cookie == 0 || c.system.listed != d {
		listing, err := list(d.dir)
		if err != nil {
			return errnoOf(err), nil
		}
		c.system.listed, c.system.listing = d, listing
	}
	used := 0
	for i := cookie; i < uint64(len(c.system.listing)) && used < len(buffer); i++ {
		used += putDirent(buffer[used:], i+1, c.system.listing[i])
	}
	return c.putU32(c.u32(4), uint32(used)), nil
}

// list returns a directory's entries, preceded by "." and ".." as WASI requires.
func list(dir *files.Dir) ([]guestfiles.Entry, error) {
	info, err := dir.Stat(".", true)
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir()
	if err != nil {
		return nil, err
	}
	dots := []guestfiles.Entry{
		{Name: ".", Kind: fs.ModeDir, Inode: info.Inode},
		// The parent may be outside what the guest can see, so its inode number is 0.
		{Name: "..", Kind: fs.ModeDir},
	}
	return append(dots, entries...), nil
}

// putDirent writes as much of an entry as fits and returns how many bytes it wrote.
func putDirent(buffer []byte, next uint64, entry guestfiles.Entry) int {
	var header [direntSize]byte
	binary.LittleEndian.PutUint64(header[:], next)
	binary.LittleEndian.PutUint64(header[8:], entry.Inode)
	binary.LittleEndian.PutUint32(header[16:], uint32(len(entry.Name)))
	header[20] = fileType(entry.Kind)
	n := copy(buffer, header[:])
	return n + copy(buffer[n:], entry.Name)
}
