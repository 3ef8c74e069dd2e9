package files

import (
	"os"
	"path/filepath"
	"syscall"
)

// openFlags are used for every open. Windows needs none: os.Root rejects device names.
const openFlags = 0

// Windows error codes that package syscall does not name (winerror.h).
const (
	errorNotSameDevice    = syscall.Errno(17)
	errorSharingViolation = syscall.Errno(32)
	errorHandleDiskFull   = syscall.Errno(39)
	errorNotSupported     = syscall.Errno(50)
	errorDiskFull         = syscall.Errno(112)
	errorInvalidName      = syscall.Errno(123)
	errorDirNotEmpty      = syscall.Errno(145)
	errorFilenameTooLong  = syscall.Errno(206)
	errorDirectory        = syscall.Errno(267)
)

// errnos maps system errors to the sentinels of this package. The first match wins. The E constants
// are invented by Go on Windows.
func errnos() []errno {
	return []errno{
		{syscall.ENOTEMPTY, ErrNotEmpty},
		{errorDirNotEmpty, ErrNotEmpty},
		{syscall.ENOTDIR, ErrNotDir},
		{errorDirectory, ErrNotDir},
		{syscall.EISDIR, ErrIsDir},
		{syscall.EINVAL, ErrInvalid},
		{errorInvalidName, ErrInvalid},
		{syscall.ELOOP, ErrLoop},
		{syscall.ENOSPC, ErrNoSpace},
		{errorDiskFull, ErrNoSpace},
		{errorHandleDiskFull, ErrNoSpace},
		{syscall.EMFILE, ErrTooManyOpen},
		{syscall.ENAMETOOLONG, ErrNameTooLong},
		{errorFilenameTooLong, ErrNameTooLong},
		{syscall.EFBIG, ErrTooLarge},
		{syscall.EXDEV, ErrCrossDevice},
		{errorNotSameDevice, ErrCrossDevice},
		{syscall.ENOTSUP, ErrNotSupported},
		{syscall.EWINDOWS, ErrNotSupported},
		{errorNotSupported, ErrNotSupported},
		{syscall.EBADF, ErrBadHandle},
		{syscall.EBUSY, ErrBusy},
		{errorSharingViolation, ErrBusy},
		{syscall.EPERM, ErrDenied},
		{syscall.EACCES, ErrDenied},
		{syscall.ERROR_ACCESS_DENIED, ErrDenied},
	}
}

// syncDirectory does nothing: Windows cannot sync directories.
func syncDirectory(*os.File) error { return nil }

// validTarget reports whether a link's target is relative. os.Root checks whether it escapes.
func validTarget(target string) bool {
	return target != "" && !os.IsPathSeparator(target[0]) && filepath.VolumeName(target) == ""
}
