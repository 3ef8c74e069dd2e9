package files

import (
	"errors"
	"io"
	"math"
	"os"
	"time"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/manifests"
)

// maxWrite is the number of bytes written at a time, while other calls on the directory wait.
const maxWrite = 1 << 20

type File struct {
	place    place
	host     *os.File    // nil for a file of a tree
	identity os.FileInfo // from when it was opened; nil for a file of a tree
	offset   int64

	readable, writable, append, closed bool
	// listed is the entry of the operation that opened the file.
	listed journal.Entry
}

// usable sets the operation for errors, and fails if the file is closed.
func (f *File) usable(op string) error {
	f.place.op = op
	if f.closed || f.place.view.closed {
		return f.place.err(errno.BadHandle)
	}
	return nil
}

func (f *File) changeable(op string, needsWrite bool) error {
	if err := f.usable(op); err != nil {
		return err
	}
	if p := f.place; !p.mount.writable {
		return p.view.readOnly(p.mount, op, p.guest)
	}
	if needsWrite && !f.writable {
		return f.place.err(errno.BadHandle)
	}
	return nil
}

// Read reads at the file's offset. It implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.offset)
	f.offset += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// ReadAt reads at an offset. It implements io.ReaderAt.
func (f *File) ReadAt(p []byte, offset int64) (n int, err error) {
	began := time.Now()
	defer func() { f.used(opRead, began, n, err) }()
	if err := f.usable("read"); err != nil {
		return 0, err
	}
	if !f.readable {
		return 0, f.place.err(errno.BadHandle)
	}
	if offset < 0 {
		return 0, f.place.err(errno.Invalid)
	}
	if f.place.node != nil {
		return f.place.node.ReadAt(p, offset)
	}
	n, err = f.host.ReadAt(p, offset)
	if errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, f.place.fail(err)
}

// Write writes at the file's offset, or at its end if it is open for appending. It implements io.Writer. It fails with
// [errno.NoSpace] if a quota or the disk has no room. A write that fails may have written its first bytes.
func (f *File) Write(p []byte) (int, error) {
	return f.write(p, f.offset, f.append, func(end int64) { f.offset = end })
}

// WriteAt writes at an offset, even if the file is open for appending (POSIX.1-2024, pwrite). It
// implements io.WriterAt.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	return f.write(p, offset, false, func(int64) {})
}

func (f *File) write(p []byte, offset int64, atEnd bool, moved func(int64)) (written int, err error) {
	began := time.Now()
	defer func() { f.used(opWrite, began, written, err) }()
	if err := f.changeable("write", true); err != nil {
		return 0, err
	}
	if offset < 0 {
		return 0, f.place.err(errno.Invalid)
	}
	for written < len(p) {
		if err := f.place.view.ctx.Err(); err != nil {
			return written, f.place.fail(err)
		}
		part := p[written:min(len(p), written+maxWrite)]
		n, end, err := f.writePart(part, offset, atEnd)
		written += n
		if n > 0 {
			offset = end
			moved(end)
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// writePart writes one part under one lock with reading the size, and returns where it ended.
func (f *File) writePart(part []byte, offset int64, atEnd bool) (n int, end int64, err error) {
	err = f.place.change(func() error {
		size, err := f.size()
		if err != nil {
			return err
		}
		if atEnd {
			offset = size
		}
		if offset > math.MaxInt64-int64(len(part)) {
			return f.place.err(errno.TooLarge)
		}
		end = offset + int64(len(part))
		if err := f.place.room(growth(size, end), 0); err != nil {
			return err
		}
		n, err = f.host.WriteAt(part, offset)
		end = offset + int64(n)
		if n > 0 {
			f.place.grew(growth(size, end), 0)
		}
		return err
	})
	return n, end, err
}

// growth returns by how much a file of the given size grows when it is written up to end.
func growth(size, end int64) manifests.Bytes { return manifests.Bytes(max(0, end-size)) }

// Seek sets the file's offset. It implements io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	if err := f.usable("seek"); err != nil {
		return 0, err
	}
	var base int64
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.offset
	case io.SeekEnd:
		size, err := f.size()
		if err != nil {
			return 0, f.place.fail(err)
		}
		base = size
	default:
		return 0, f.place.err(errno.Invalid)
	}
	if offset > math.MaxInt64-base || base+offset < 0 {
		return 0, f.place.err(errno.Invalid)
	}
	f.offset = base + offset
	return f.offset, nil
}

func (f *File) size() (int64, error) {
	if f.place.node != nil {
		return f.place.node.Info(0).Size, nil
	}
	info, err := f.host.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *File) Stat() (guestfiles.Info, error) {
	if err := f.usable("stat"); err != nil {
		return guestfiles.Info{}, err
	}
	if f.place.node != nil {
		return f.place.node.Info(f.place.mount.inode), nil
	}
	info, err := f.host.Stat()
	if err != nil {
		return guestfiles.Info{}, f.place.fail(err)
	}
	return f.place.view.describe(info), nil
}

// SetSize truncates the file, or extends it with zeros. The zeros count as written.
func (f *File) SetSize(size int64) (err error) {
	defer f.change(opTruncate)(&err)
	return f.resize("set size", size, func(int64) bool { return true })
}

// Allocate extends the file with zeros to offset+length if it is shorter. The zeros count as
// written. It reserves no other disk space.
func (f *File) Allocate(offset, length int64) (err error) {
	defer f.change(opTruncate)(&err)
	if err := f.changeable("allocate", true); err != nil {
		return err
	}
	if offset < 0 || length <= 0 {
		return f.place.err(errno.Invalid)
	}
	if offset > math.MaxInt64-length {
		return f.place.err(errno.TooLarge)
	}
	end := offset + length
	return f.resize("allocate", end, func(size int64) bool { return size < end })
}

// resize sets the file's size if needed returns true for the present size.
func (f *File) resize(op string, size int64, needed func(present int64) bool) error {
	if err := f.changeable(op, true); err != nil {
		return err
	}
	if size < 0 {
		return f.place.err(errno.Invalid)
	}
	return f.place.change(func() error {
		present, err := f.size()
		if err != nil {
			return err
		}
		switch {
		case !needed(present) || size == present:
			return nil
		case size < present:
			return f.place.cutTo(f.host, present, size)
		}
		return f.place.grow(growth(present, size), 0, func() error { return f.host.Truncate(size) })
	})
}

// cutTo truncates a file. The caller must hold the tracker's turn.
func (p place) cutTo(f *os.File, present, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	freed := manifests.Bytes(present - size)
	p.mount.tracker.add(-freed, 0)
	p.freed(freed, false, nil)
	return nil
}

// SetTimes sets the file's times. A nil time is not changed. Other times are restricted as in [Dir.SetTimes].
func (f *File) SetTimes(atime, mtime *time.Time) (err error) {
	defer f.change(opTimes)(&err)
	if err := f.changeable("set times", false); err != nil {
		return err
	}
	if atime == nil && mtime == nil {
		return nil
	}
	if !canStore(atime) || !canStore(mtime) {
		return f.place.err(errno.Invalid)
	}
	return f.place.fail(setTimes(f.host, atime, mtime))
}

func (f *File) Sync() error {
	if err := f.usable("sync"); err != nil {
		return err
	}
	if f.place.node != nil {
		return nil
	}
	return f.place.fail(f.place.view.sync(f.host.Sync))
}

// SetAppend sets whether Write writes at the end of the file. It does not make the file writable.
func (f *File) SetAppend(on bool) { f.append = on }

// Close closes the file. It fails with [errno.BadHandle] if the file or its view is closed.
func (f *File) Close() error {
	if err := f.usable("close"); err != nil {
		return err
	}
	f.closed = true
	delete(f.place.view.handles, f)
	if f.place.node != nil {
		return nil
	}
	freed, gone := f.place.mount.tracker.closed(f.identity, f.host)
	f.place.freed(freed, gone, f.identity)
	return f.place.fail(f.host.Close())
}
