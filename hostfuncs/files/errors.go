package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/tool"
)

// Error is the failure of one operation. Its text is safe to show to a guest: it contains only guest paths.
type Error struct {
	Op   string // the operation: "open", "rename", …
	Path string // the absolute guest path, shortened and without control characters
	// Err is or wraps an [errno.Errno]. Errors of this package that are not of this type are io.EOF, which reads return
	// unwrapped, and that of a context that is done.
	Err error
	// Denial is the receipt if a permission denied the operation, else nil. For an operation of a view, only its Journal
	// returns the rules that would allow it.
	Denial *tool.Denial

	// cause is the host's error that Err reports as errno.IO. It may contain host paths.
	cause error
	// limit names the exhausted limit, for the operator.
	limit string
}

// Error returns the operation, the guest path, the sentinel's text and the rule of the receipt, never the host's error.
func (e *Error) Error() string {
	text := e.Op
	if e.Path != "" {
		text += " " + e.Path
	}
	text += ": " + e.Err.Error()
	if e.Denial != nil && e.Denial.Rule != "" {
		text += ": " + e.Denial.Rule
	}
	return text
}

// Unwrap returns the sentinel and, for errno.IO, the host's error. The text of the host's error is
// for the operator only.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.cause}
}

// sentinels are those for the numbers of the host's errors that every system has.
var sentinels = map[syscall.Errno]error{
	syscall.ENOTEMPTY: errno.NotEmpty, syscall.ENOTDIR: errno.NotDir, syscall.EISDIR: errno.IsDir,
	syscall.EINVAL: errno.Invalid, syscall.ELOOP: errno.Loop, syscall.ENAMETOOLONG: errno.NameTooLong,
	syscall.ENOSPC: errno.NoSpace, syscall.EDQUOT: errno.NoSpace, syscall.EMLINK: errno.NoSpace,
	syscall.EMFILE: errno.TooManyOpen, syscall.ENFILE: errno.TooManyOpen,
	syscall.EFBIG: errno.TooLarge, syscall.EOVERFLOW: errno.TooLarge,
	syscall.EXDEV: errno.CrossDevice, syscall.EBADF: errno.BadHandle, syscall.EROFS: errno.ReadOnly,
	syscall.EBUSY: errno.Busy, syscall.ETXTBSY: errno.Busy,
}

// sentinelOf returns the sentinel for an error of the host. The default is errno.IO.
func sentinelOf(err error) error {
	number, _ := errors.AsType[syscall.Errno](err)
	numbered := cmp.Or(sentinels[number], systemSentinels[number])
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errno.NotExist
	case numbered != nil:
		return numbered
	case errors.Is(err, errors.ErrUnsupported):
		return errno.NotSupported
	case errors.Is(err, fs.ErrExist):
		return errno.Exist
	case errors.Is(err, fs.ErrPermission):
		return errno.Denied
	case errors.Is(err, fs.ErrClosed):
		return errno.BadHandle
	default:
		return errno.IO
	}
}

// escapeOf returns the error that os.Root returns for a path that leaves it. The standard library
// does not export this error, so escapeOf provokes it.
func escapeOf(root *os.Root) error {
	_, err := root.Lstat("..")
	var refused *fs.PathError
	if !errors.As(err, &refused) || refused.Err == nil {
		return fmt.Errorf("%w: the system's root does not refuse \"..\"", errno.NotSupported)
	}
	return refused.Err
}
