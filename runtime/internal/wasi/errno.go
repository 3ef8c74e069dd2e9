package wasi

import (
	"errors"

	"github.com/caisson-run/caisson/internal/errno"
)

// Errno is a WASI error number. The guest gets it as the result of a function.
type Errno = errno.Errno

// Error numbers. Errors of package files have further ones.
const (
	Success      Errno = 0
	EBADF        Errno = 8
	EEXIST       Errno = 20
	EFAULT       Errno = 21
	EFBIG        Errno = 22
	EILSEQ       Errno = 25
	EINVAL       Errno = 28
	EIO          Errno = 29
	EISDIR       Errno = 31
	EMFILE       Errno = 33
	ENAMETOOLONG Errno = 37
	ENOENT       Errno = 44
	ENOTDIR      Errno = 54
	ENOTSOCK     Errno = 57
	ENOTSUP      Errno = 58
	EPERM        Errno = 63
	EROFS        Errno = 69
	ESPIPE       Errno = 70
)

// errnoOf returns the number for an error of package files. An error without one is the host's own problem; the guest
// sees only EIO.
func errnoOf(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[Errno](err); ok {
		return known
	}
	return EIO
}
