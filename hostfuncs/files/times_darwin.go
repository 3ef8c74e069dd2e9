package files

import (
	"os"
	"syscall"
	"time"
)

// setTimes sets the times of an open file, with microsecond precision. A nil time is not changed.
func setTimes(f *os.File, atime, mtime *time.Time) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	accessed, modified := orKept(info, atime, mtime)
	times := []syscall.Timeval{syscall.NsecToTimeval(accessed.UnixNano()), syscall.NsecToTimeval(modified.UnixNano())}
	return control(f, func(fd uintptr) error { return syscall.Futimes(int(fd), times) })
}
