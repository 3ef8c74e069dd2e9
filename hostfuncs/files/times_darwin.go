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
	accessed, modified := detailsOf(info).accessed, info.ModTime()
	if atime != nil {
		accessed = *atime
	}
	if mtime != nil {
		modified = *mtime
	}
	times := []syscall.Timeval{syscall.NsecToTimeval(accessed.UnixNano()), syscall.NsecToTimeval(modified.UnixNano())}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = syscall.Futimes(int(fd), times) }); err != nil {
		return err
	}
	return failed
}
