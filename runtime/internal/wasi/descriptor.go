package wasi

import (
	"encoding/binary"
	"io/fs"
	"math"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
)

var descriptorFunctions = []function{
	{"fd_advise", "iIIi", advise},
	{"fd_allocate", "iII", onFile(allocate)},
	{"fd_close", "i", onDescriptor(closeDescriptor)},
	{"fd_datasync", "i", onDescriptor(syncDescriptor)},
	{"fd_fdstat_get", "ii", onDescriptor(fdstat)},
	{"fd_fdstat_set_flags", "ii", onDescriptor(setFlags)},
	{"fd_fdstat_set_rights", "iII", onDescriptor(setRights)},
	{"fd_filestat_get", "ii", onDescriptor(filestat)},
	{"fd_filestat_set_size", "iI", setSize},
	{"fd_filestat_set_times", "iIIi", onDescriptor(setTimes)},
	{"fd_prestat_get", "ii", onPreopen(prestat)},
	{"fd_prestat_dir_name", "iii", onPreopen(prestatName)},
	{"fd_renumber", "ii", onDescriptor(renumber)},
	{"fd_sync", "i", onDescriptor(syncDescriptor)},
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

func advise(c *call) error {
	if c.u32(3) > 5 { // the last is noreuse
		return EINVAL
	}
	_, err := c.system.file(c.u32(0))
	return err
}

func allocate(c *call, file *files.File) error {
	offset, length := int64(c.u64(1)), int64(c.u64(2))
	if offset < 0 || length <= 0 {
		return EINVAL
	}
	return errnoOf(file.Allocate(offset, length))
}

func closeDescriptor(c *call, d *descriptor) error {
	c.system.descriptors[c.u32(0)] = nil
	return errnoOf(d.close())
}

func syncDescriptor(_ *call, d *descriptor) error {
	switch {
	case d.file != nil:
		return errnoOf(d.file.Sync())
	case d.dir != nil:
		return nil // a directory's contents are synced with its files
	}
	return EINVAL
}

func fdstat(c *call, d *descriptor) error {
	stat, ok := c.memory.View(c.u32(1), 24)
	if !ok {
		return EFAULT
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
	return nil
}

func setFlags(c *call, d *descriptor) error {
	flags := uint16(c.u32(1))
	if uint32(flags) != c.u32(1) || flags > flagAppend|flagNonblock|flagsSynchronous {
		return EINVAL
	}
	if d.file != nil {
		d.file.SetAppend(flags&flagAppend != 0)
	}
	d.flags = flags
	return nil
}

// setRights refuses to change anything: reduced rights would not be enforced.
func setRights(*call, *descriptor) error { return ENOTSUP }

func filestat(c *call, d *descriptor) error {
	var info guestfiles.Info
	var err error
	switch {
	case d.file != nil:
		info, err = d.file.Stat()
	case d.dir != nil:
		info, err = d.dir.Stat(".", true)
	}
	if err != nil {
		return errnoOf(err)
	}
	return c.putFilestat(c.u32(1), info)
}

// putFilestat writes a filestat. Device numbers are 0, to hide those of the host.
func (c *call) putFilestat(pointer uint32, info guestfiles.Info) error {
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
	return nil
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

func setSize(c *call) error {
	file, err := c.system.file(c.u32(0))
	size := int64(c.u64(1))
	switch {
	case err == ESPIPE, err == nil && size < 0:
		return EINVAL
	case err != nil:
		return err
	}
	return errnoOf(file.SetSize(size))
}

func setTimes(c *call, d *descriptor) error {
	accessed, modified, err := c.times(c.u64(1), c.u64(2), c.u32(3))
	switch {
	case err != nil:
		return err
	case d.file != nil:
		return errnoOf(d.file.SetTimes(accessed, modified))
	case d.dir != nil:
		return errnoOf(d.dir.SetTimes(".", true, accessed, modified))
	}
	return EINVAL
}

// times resolves the fstflags: each time is unchanged (nil), set to now, or set to the given value.
func (c *call) times(accessed, modified uint64, flags uint32) (atime, mtime *time.Time, err error) {
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
	return choose(accessed, atim, atimNow), choose(modified, mtim, mtimNow), nil
}

// onPreopen returns a handler for a function about the guest path of the preopened directory that is parameter 0.
func onPreopen(do func(c *call, path string) error) handler {
	return onDescriptor(func(c *call, d *descriptor) error {
		if d.preopen == "" {
			return EBADF
		}
		return do(c, d.preopen)
	})
}

func prestat(c *call, path string) error {
	stat, ok := c.memory.View(c.u32(1), 8)
	if !ok {
		return EFAULT
	}
	clear(stat) // the tag of a directory is 0
	binary.LittleEndian.PutUint32(stat[4:], uint32(len(path)))
	return nil
}

func prestatName(c *call, path string) error {
	if uint64(c.u32(2)) < uint64(len(path)) {
		return ENAMETOOLONG
	}
	name, ok := c.memory.View(c.u32(1), uint32(len(path)))
	if !ok {
		return EFAULT
	}
	copy(name, path)
	return nil
}

// renumber replaces one descriptor with another. Either may be a preopened directory: a guest may
// close one, too.
func renumber(c *call, source *descriptor) error {
	from, to := c.u32(0), c.u32(1)
	target, err := c.system.descriptor(to)
	if err != nil || from == to {
		return err
	}
	c.system.descriptors[to], c.system.descriptors[from] = source, nil
	return errnoOf(target.close())
}
