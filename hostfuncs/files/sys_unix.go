//go:build unix

package files

import (
	"os"
	"syscall"
)

// openFlags are used for every open. A pipe or a terminal that replaces a file between the check
// and the open must neither block the call nor become the process's controlling terminal.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// errnos maps system errors to the sentinels of this package. The first match wins.
func errnos() []errno {
	return []errno{
		{syscall.ENOTEMPTY, ErrNotEmpty},
		{syscall.ENOTDIR, ErrNotDir},
		{syscall.EISDIR, ErrIsDir},
		{syscall.EINVAL, ErrInvalid},
		{syscall.ELOOP, ErrLoop},
		{syscall.ENOSPC, ErrNoSpace},
		{syscall.EDQUOT, ErrNoSpace},
		{syscall.EMLINK, ErrNoSpace},
		{syscall.EMFILE, ErrTooManyOpen},
		{syscall.ENFILE, ErrTooManyOpen},
		{syscall.ENAMETOOLONG, ErrNameTooLong},
		{syscall.EFBIG, ErrTooLarge},
		{syscall.EOVERFLOW, ErrTooLarge},
		{syscall.EXDEV, ErrCrossDevice},
		{syscall.ENOTSUP, ErrNotSupported},
		{syscall.EOPNOTSUPP, ErrNotSupported},
		{syscall.ENOSYS, ErrNotSupported},
		{syscall.EBADF, ErrBadHandle},
		{syscall.EBUSY, ErrBusy},
		{syscall.ETXTBSY, ErrBusy},
		{syscall.EROFS, ErrReadOnly},
		{syscall.EPERM, ErrDenied},
		{syscall.EACCES, ErrDenied},
	}
}

// syncDirectory commits a directory's names to disk.
func syncDirectory(f *os.File) error { return f.Sync() }

// validTarget reports whether a link's target is relative. os.Root checks whether it escapes.
func validTarget(target string) bool { return target != "" && target[0] != '/' }
