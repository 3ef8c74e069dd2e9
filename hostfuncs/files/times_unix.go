//go:build unix

package files

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setLinkTimes sets the times of the symbolic link with a name in a directory. The name is one
// element of a path, and not followed.
func setLinkTimes(directory *os.File, name string, atime, mtime time.Time) error {
	times := []unix.Timespec{unix.NsecToTimespec(atime.UnixNano()), unix.NsecToTimespec(mtime.UnixNano())}
	conn, err := directory.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) {
		failed = unix.UtimesNanoAt(int(fd), name, times, unix.AT_SYMLINK_NOFOLLOW)
	}); err != nil {
		return err
	}
	return failed
}
