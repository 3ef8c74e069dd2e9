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
	return control(directory, func(fd uintptr) error {
		return unix.UtimesNanoAt(int(fd), name, times, unix.AT_SYMLINK_NOFOLLOW)
	})
}
