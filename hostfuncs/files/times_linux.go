package files

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// utimeOmit in the nanoseconds leaves a time unchanged (utimensat(2)).
const utimeOmit = 1<<30 - 2

// setTimes sets the times of an open file. A nil time is not changed. Like futimens(3), it calls
// utimensat(2) with a handle and no path.
func setTimes(f *os.File, atime, mtime *time.Time) error {
	var times [2]syscall.Timespec
	for i, t := range []*time.Time{atime, mtime} {
		times[i].Nsec = utimeOmit
		if t != nil {
			times[i] = syscall.NsecToTimespec(t.UnixNano())
		}
	}
	return control(f, func(fd uintptr) error {
		_, _, failed := syscall.Syscall6(syscall.SYS_UTIMENSAT, fd, 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
		if failed != 0 {
			return failed
		}
		return nil
	})
}
