package files

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/caisson-run/caisson/internal/errno"
)

// openFlags are used for every open. Windows needs none: os.Root rejects device names.
const openFlags = 0

// systemSentinels are the [sentinels] for errors that only this system has, by the names in winerror.h.
var systemSentinels = map[syscall.Errno]error{
	17:  errno.CrossDevice, // ERROR_NOT_SAME_DEVICE
	32:  errno.Busy,        // ERROR_SHARING_VIOLATION
	39:  errno.NoSpace,     // ERROR_HANDLE_DISK_FULL
	112: errno.NoSpace,     // ERROR_DISK_FULL
	123: errno.Invalid,     // ERROR_INVALID_NAME
	145: errno.NotEmpty,    // ERROR_DIR_NOT_EMPTY
	206: errno.NameTooLong, // ERROR_FILENAME_EXCED_RANGE
	267: errno.NotDir,      // ERROR_DIRECTORY
}

func validTarget(target string) bool {
	return target != "" && !os.IsPathSeparator(target[0]) && filepath.VolumeName(target) == ""
}

// isUnlinked returns false, since it cannot tell whether an open file still has a name.
func isUnlinked(os.FileInfo) bool { return false }
