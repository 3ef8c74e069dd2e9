package files

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// setTimes sets the times of an open file. A nil time is not changed. Windows requires a handle with write access.
func setTimes(f *os.File, atime, mtime *time.Time) error {
	filetime := func(t *time.Time) *syscall.Filetime {
		if t == nil {
			return nil
		}
		value := syscall.NsecToFiletime(t.UnixNano())
		return &value
	}
	return control(f, func(fd uintptr) error {
		return syscall.SetFileTime(syscall.Handle(fd), nil, filetime(atime), filetime(mtime))
	})
}

// setLinkTimes fails: package os opens no link by its directory's handle.
func setLinkTimes(*os.File, string, time.Time, time.Time) error { return errors.ErrUnsupported }
