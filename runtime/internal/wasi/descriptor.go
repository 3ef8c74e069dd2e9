package wasi

import (
	"encoding/binary"
	"io/fs"
	"math"
	"time"

	"github.com/caisson-run/caisson/internal/guestfiles"
)

var descriptorFunctions = []function{
	{"fd_advise", "iIIi", advise},
	{"fd_allocate", "iII", allocate},
	{"fd_close", "i", closeDescriptor},
	{"fd_datasync", "i", syncDescriptor},
	{"fd_fdstat_get", "ii", fdstat},
	{"fd_fdstat_set_flags", "ii", setFlags},
	{"fd_fdstat_set_rights", "iII", setRights},
	{"fd_filestat_get", "ii", filestat},
	{"fd_filestat_set_size", "iI", setSize},
	{"fd_filestat_set_times", "iIIi", setTimes},
	{"fd_prestat_get", "ii", prestat},
	{"fd_prestat_dir_name", "iii", prestatName},
	{"fd_renumber", "ii", renumber},
	{"fd_sync", "i", syncDescriptor},
}

// The file types.
const (
	fileUnknown   byte = 0
	fileDirectory byte = 3
	fileRegular   byte = 4
	fileSymlink   byte = 7
)

// The fdflags.
const (
	flagAppend   uint16 = 1 << iota
	flagDSync           // data integrity
	flagNonblock        // no effect: nothing here blocks
	flagRSync
	flagSync
)

const flagsSynchronous = flagDSync | flagRSync | flagSync

func fileType(kind fs.FileMode) byte {
	switch kind {
	case 0:
		return fileRegular
	case fs.ModeDir:
		return fileDirectory
	case fs.ModeSymlink:
		return fileSymlink
	}
	return fileUnknown
}

func advise(c *call) (Errno, error) {
	if c.u32(3) > 5 { // the last is noreuse
		return EINVAL, nil
	}
	_, errno := c.system.file(c.u32(0))
	return errno, nil
}

func allocate(c *call) (Errno, error) {
	file, errno := c.system.file(c.u32(0))
	if errno != Success {
		return errno, nil
	}
	offset, length := int64(c.u64(1)), int64(c.u64(2))
	if offset < 0 || length <= 0 {
		return EINVAL, nil
	}
	return errnoOf(file.Allocate(offset, length)), nil
}

func closeDescriptor(c *call) (Errno, error) {
	number := c.u32(0)
	d, errno := c.system.descriptor(number)
	if errno != Success {
		return errno, nil
	}
	c.system.descriptors[number] = nil
	return errnoOf(d.close()), nil
}

func syncDescriptor(c *call) (Errno, error) {
	d, errno := c.system.descriptor(c.u32(0))
	switch {
	case errno != Success:
		return errno, nil
	case d.file != nil:
		return errnoOf(d.file.Sync()), nil
	case d.dir != nil:
		return Success, nil // a directory's contents are synced with its files
	}
	return EINVAL, nil
}

func fdstat(c *call) (Errno, error) {
	d, errno := c.system.descriptor(c.u32(0))
	if errno != Success {
		return errno, nil
	}
	stat, ok := c.memory.View(c.u32(1), 24)
	if !ok {
		return EFAULT, nil
	}
	clear(stat)
	switch {
	case d.dir != nil:
		stat[0] = fileDirectory
	case d.file != nil:
		stat[0] = fileRegular
	}
	base, inheriting := d.rights()
	binary.LittleEndian.PutUint16(stat[2:], d.flags)
	binary.LittleEndian.PutUint64(stat[8:], base)
	binary.LittleEndian.PutUint64(stat[16:], inheriting)
	return Success, nil
}

func setFlags(c *call) (Errno, error) {
	d, errno := c.system.descriptor(c.u32(0))
	if errno != Success {
		return errno, nil
	}
	flags := uint16(c.u32(1))
	if uint32(flags) != c.u32(1) || flags > flagAppend|flagNonblock|flagsSynchronous {
		return EINVAL, nil
	}
	if d.file != nil {
		d.file.SetAppend(flags&flagAppend != 0)
	}
	d.flags = flags
	return Success, nil
}

// setRights refuses to change anything. Rights follow from the permission and from how a file was
// opened, so reduced rights would not be enforced.
func setRights(c *call) (Errno, error) {
	if _, errno := c.system.descriptor(c.u32(0)); errno != Success {
		return errno, nil
	}
	return ENOTSUP, nil
}

func filestat(c *call) (Errno, error) {
	d, errno := c.system.descriptor(c.u32(0))
	if errno != Success {
		return errno, nil
	}
	var info guestfiles.Info
	var err error
	switch {
	case d.file != nil:
		info, err = d.file.Stat()
	case d.dir != nil:
		info, err = d.dir.Stat(".", true)
	}
	if err != nil {
		return errnoOf(err), nil
	}
	return c.putFilestat(c.u32(1), info), nil
}

// putFilestat writes a filestat. Device numbers are 0, to hide those of the host.
func (c *call) putFilestat(pointer uint32, info guestfiles.Info) Errno {
	size := uint32(64)
	if c.draft {
		size = 56 // the number of links takes the room of padding
	}
	stat, ok := c.memory.View(pointer, size)
	if !ok {
		return EFAULT
	}
	clear(stat)
	binary.LittleEndian.PutUint64(stat[8:], info.Inode)
	stat[16] = fileType(info.Kind)
	if c.draft {
		binary.LittleEndian.PutUint32(stat[20:], uint32(min(max(info.Links, 1), math.MaxUint32)))
	} else {
		binary.LittleEndian.PutUint64(stat[24:], max(info.Links, 1))
	}
	rest := stat[size-32:]
	binary.LittleEndian.PutUint64(rest, uint64(info.Size))
	binary.LittleEndian.PutUint64(rest[8:], nanoseconds(info.Accessed))
	binary.LittleEndian.PutUint64(rest[16:], nanoseconds(info.Modified))
	binary.LittleEndian.PutUint64(rest[24:], nanoseconds(info.Changed))
	return Success
}

// nanoseconds returns a timestamp, which has no sign and ends in the year 2554. Earlier and later times become the
// first and the last one: a file that cannot be described could not be listed.
func nanoseconds(t time.Time) uint64 {
	const last = math.MaxUint64/1_000_000_000 - 1
	switch seconds := t.Unix(); {
	case seconds < 0:
		return 0
	case seconds > last:
		return math.MaxUint64
	default:
		return uint64(seconds)*1e9 + uint64(t.Nanosecond())
	}
}

func setSize(c *call) (Errno, error) {
	file, errno := c.system.file(c.u32(0))
	if errno != Success {
		if errno == ESPIPE {
			errno = EINVAL
		}
		return errno, nil
	}
	size := int64(c.u64(1))
	if size < 0 {
		return EINVAL, nil
	}
	return errnoOf(file.SetSize(size)), nil
}

func setTimes(c *call) (Errno, error) {
	d, errno := c.system.descriptor(c.u32(0))
	if errno != Success {
		return errno, nil
	}
	accessed, modified, errno := c.times(c.u64(1), c.u64(2), c.u32(3))
	if errno != Success {
		return errno, nil
	}
	switch {
	case d.file != nil:
		return errnoOf(d.file.SetTimes(accessed, modified)), nil
	case d.dir != nil:
		return errnoOf(d.dir.SetTimes(".", true, accessed, modified)), nil
	}
	return EINVAL, nil
}

// times resolves the fstflags: each time is unchanged (nil), set to now, or set to the given value.
func (c *call) times(accessed, modified uint64, flags uint32) (atime, mtime *time.Time, errno Errno) {
	const atim, atimNow, mtim, mtimNow = 1, 2, 4, 8
	const atimBoth, mtimBoth = atim | atimNow, mtim | mtimNow
	if flags > 15 || flags&atimBoth == atimBoth || flags&mtimBoth == mtimBoth {
		return nil, nil, EINVAL
	}
	choose := func(given uint64, set, now uint32) *time.Time {
		var t time.Time
		switch {
		case flags&set != 0:
			t = time.Unix(int64(given/1e9), int64(given%1e9))
		case flags&now != 0 && c.system.Now != nil:
			t = c.system.Now()
		default:
			return nil
		}
		return &t
	}
	return choose(accessed, atim, atimNow), choose(modified, mtim, mtimNow), Success
}

func (c *call) preopenedPath() (string, Errno) {
	d, errno := c.system.descriptor(c.u32(0))
	if errno != Success {
		return "", errno
	}
	if d.preopen == "" {
		return "", EBADF
	}
	return d.preopen, Success
}

func prestat(c *call) (Errno, error) {
	path, errno := c.preopenedPath()
	if errno != Success {
		return errno, nil
	}
	stat, ok := c.memory.View(c.u32(1), 8)
	if !ok {
		return EFAULT, nil
	}
	clear(stat) // the tag of a directory is 0
	binary.LittleEndian.PutUint32(stat[4:], uint32(len(path)))
	return Success, nil
}

func prestatName(c *call) (Errno, error) {
	path, errno := c.preopenedPath()
	if errno != Success {
		return errno, nil
	}
	if uint64(c.u32(2)) < uint64(len(path)) {
		return ENAMETOOLONG, nil
	}
	name, ok := c.memory.View(c.u32(1), uint32(len(path)))
	if !ok {
		return EFAULT, nil
	}
	copy(name, path)
	return Success, nil
}

// renumber replaces one descriptor with another. Either may be a preopened directory: a guest may
// close one, too.
func renumber(c *call) (Errno, error) {
	from, to := c.u32(0), c.u32(1)
	source, errno := c.system.descriptor(from)
	if errno != Success {
		return errno, nil
	}
	target, errno := c.system.descriptor(to)
	if errno != Success {
		return errno, nil
	}
	if from == to {
		return Success, nil
	}
	c.system.descriptors[to], c.system.descriptors[from] = source, nil
	return errnoOf(target.close()), nil
}
