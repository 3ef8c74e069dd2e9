//go:build unix

package files

import (
	"os"
	"syscall"
)

// openFlags go with every open. A pipe or a terminal that takes a file's place
// between the check and the open must neither block the call nor become the
// process's controlling terminal.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// errnos maps the system's errors to those of this package. The first match wins.
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

// syncDirectory waits until a directory's names are on the disk.
func syncDirectory(f *os.File) error { return f.Sync() }

// validTarget reports whether a link's target can be followed: os.Root decides.
func validTarget(target string) bool { return target != "" && target[0] != '/' }
