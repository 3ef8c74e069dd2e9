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
	{"fd_pread", "iiiIi", onFile(pread)},
	{"fd_pwrite", "iiiIi", onFile(pwrite)},
	{"fd_read", "iiii", onDescriptor(readDescriptor)},
	{"fd_readdir", "iiiIi", onDescriptor(readdir)},
	{"fd_seek", "iIii", onFile(seek)},
	{"fd_tell", "ii", onFile(tell)},
	{"fd_write", "iiii", onDescriptor(writeDescriptor)},
}

// finish writes how many bytes were moved. If any were, an errno is dropped; the guest sees the
// failure at its next call, as on other systems.
func (c *call) finish(pointer, total uint32, err error) error {
	if _, isErrno := err.(Errno); err != nil && (total == 0 || !isErrno) {
		return err
	}
	return c.putU32(pointer, total)
}

func readDescriptor(c *call, d *descriptor) error {
	switch {
	case d.dir != nil:
		return EISDIR
	case !d.stdin && d.file == nil && d.device == nil:
		return EBADF
	case d.stdin && c.system.Starting:
		return &StartError{Function: "fd_read"}
	}
	if begins := c.system.OnInput; d.stdin && begins != nil {
		c.system.OnInput = nil
		begins()
	}
	total, err := c.vectors(d.file != nil, func(piece []byte) (int, error) {
		if d.stdin {
			n := copy(piece, c.system.Stdin)
			c.system.Stdin = c.system.Stdin[n:]
			return n, nil
		}
		if d.device != nil {
			return d.device.read(c, piece)
		}
		return fill(d.file.Read(piece))
	})
	return c.finish(c.u32(3), total, err)
}

// fill converts the result of a read. The end of a file is not an error in WASI.
func fill(n int, err error) (int, error) {
	if errors.Is(err, io.EOF) {
		return n, nil
	}
	return n, errnoOf(err)
}

func pread(c *call, file *files.File) error {
	return c.atOffset(func(piece []byte, offset int64) (int, error) { return fill(file.ReadAt(piece, offset)) })
}

func pwrite(c *call, file *files.File) error {
	return c.atOffset(func(piece []byte, offset int64) (int, error) {
		n, err := file.WriteAt(piece, offset)
		return n, errnoOf(err)
	})
}

// atOffset implements fd_pread and fd_pwrite, which move each piece at an offset.
func (c *call) atOffset(move func(piece []byte, offset int64) (int, error)) error {
	offset := int64(c.u64(3))
	if offset < 0 {
		return EINVAL
	}
	total, err := c.vectors(true, func(piece []byte) (int, error) {
		n, err := move(piece, offset)
		offset += int64(n)
		return n, err
	})
	return c.finish(c.u32(4), total, err)
}

func writeDescriptor(c *call, d *descriptor) error {
	switch {
	case d.dir != nil:
		return EISDIR
	case c.system.Starting && (d.number == 1 || d.number == 2): // the output, which only calls have
		return &StartError{Function: "fd_write"}
	case d.output == nil && d.file == nil && d.device == nil:
		return EBADF
	}
	total, err := c.vectors(d.file != nil, func(piece []byte) (int, error) {
		if d.output != nil {
			_, err := d.output.Write(piece)
			return len(piece), err
		}
		if d.device != nil {
			return d.device.write(c, piece)
		}
		n, err := d.file.Write(piece)
		return n, errnoOf(err)
	})
	if err == nil && d.file != nil && d.flags&flagsSynchronous != 0 {
		if err := d.file.Sync(); err != nil {
			return errnoOf(err)
		}
	}
	return c.finish(c.u32(3), total, err)
}

func seek(c *call, file *files.File) error {
	whence := c.u32(2)
	if whence > 2 { // set, cur and end have io.Seeker's numbers
		return EINVAL
	}
	if c.draft {
		whence = [...]uint32{io.SeekCurrent, io.SeekEnd, io.SeekStart}[whence]
	}
	position, err := file.Seek(int64(c.u64(1)), int(whence))
	if err != nil {
		return errnoOf(err)
	}
	return c.putU64(c.u32(3), uint64(position))
}

func tell(c *call, file *files.File) error {
	position, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return errnoOf(err)
	}
	return c.putU64(c.u32(1), uint64(position))
}

const direntSize = 24

// readdir writes the entries from a cookie on. A cookie is an index into the listing; cookie 0
// takes a new listing. Only one listing is kept for all descriptors, so that a guest cannot fill
// the host's memory with listings; switching to another directory lists that one anew. The end of
// the buffer may cut off the last entry, which tells the guest that more entries follow.
func readdir(c *call, d *descriptor) error {
	if d.dir == nil {
		return ENOTDIR
	}
	buffer, ok := c.memory.View(c.u32(1), c.u32(2))
	if !ok {
		return EFAULT
	}
	cookie := c.u64(3)
	if cookie == 0 || c.system.listed != d {
		listing, err := list(d.dir)
		if err != nil {
			return errnoOf(err)
		}
		c.system.listed, c.system.listing = d, listing
	}
	used := 0
	for i := cookie; i < uint64(len(c.system.listing)) && used < len(buffer); i++ {
		used += putDirent(buffer[used:], i+1, c.system.listing[i])
	}
	return c.putU32(c.u32(4), uint32(used))
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
