package files

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/caisson-run/caisson/internal/errno"
)

// openFlags are used for every open. Windows needs none: os.Root rejects device names.
const openFlags = 0

// Windows error codes that package syscall does not name (winerror.h).
const (
	errorNotSameDevice    = syscall.Errno(17)
	errorSharingViolation = syscall.Errno(32)
	errorHandleDiskFull   = syscall.Errno(39)
	errorDiskFull         = syscall.Errno(112)
	errorInvalidName      = syscall.Errno(123)
	errorDirNotEmpty      = syscall.Errno(145)
	errorFilenameTooLong  = syscall.Errno(206)
	errorDirectory        = syscall.Errno(267)
)

func systemSentinel(number syscall.Errno) error {
	switch number {
	case errorDirNotEmpty:
		return errno.NotEmpty
	case errorDirectory:
		return errno.NotDir
	case errorInvalidName:
		return errno.Invalid
	case errorDiskFull, errorHandleDiskFull:
		return errno.NoSpace
	case errorFilenameTooLong:
		return errno.NameTooLong
	case errorNotSameDevice:
		return errno.CrossDevice
	case errorSharingViolation:
		return errno.Busy
	}
	return nil
}

func validTarget(target string) bool {
	return target != "" && !os.IsPathSeparator(target[0]) && filepath.VolumeName(target) == ""
}

// isUnlinked returns false, since it cannot tell whether an open file still has a name.
func isUnlinked(os.FileInfo) bool { return false }
