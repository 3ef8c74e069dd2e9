package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/caisson-run/caisson/tool"
)

// The kinds of failure. Every error from this package matches exactly one of them with errors.Is,
// except io.EOF, which reads return unwrapped, and the error of a context that is done.
var (
	ErrDenied       = errors.New("permission denied")
	ErrReadOnly     = errors.New("read-only file system")
	ErrNotExist     = errors.New("no such file or directory")
	ErrExist        = errors.New("file exists")
	ErrNotDir       = errors.New("not a directory")
	ErrIsDir        = errors.New("is a directory")
	ErrNotEmpty     = errors.New("directory not empty")
	ErrInvalid      = errors.New("invalid argument")
	ErrLoop         = errors.New("too many levels of symbolic links")
	ErrNoSpace      = errors.New("no space left")
	ErrTooManyOpen  = errors.New("too many open files")
	ErrNameTooLong  = errors.New("file name too long")
	ErrTooLarge     = errors.New("file too large")
	ErrCrossDevice  = errors.New("cross-device link")
	ErrNotSupported = errors.New("not supported")
	ErrBadHandle    = errors.New("bad file handle")
	ErrBusy         = errors.New("resource busy")
	errIO           = errors.New("input/output error")
)

// Error is the failure of one operation. Its text is safe to show to a guest: it contains only
// guest paths.
type Error struct {
	Op   string // the operation: "open", "rename", …
	Path string // the absolute guest path, shortened and without control characters
	Err  error  // matches one of the sentinels of this package
	// Denial is the receipt if a permission denied the operation, else nil. For an operation of
	// a view, only its Journal returns what would allow it.
	Denial *tool.Denial

	// cause is the host's error behind ErrIO. It may contain host paths.
	cause error
	// limit is what left no space, for the operator.
	limit string
}

// Error returns the operation, the guest path, the sentinel's text and the rule of the receipt,
// never the host's error.
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

// Unwrap returns the sentinel and, for errIO, the host's error. The text of the host's error is
// for the operator only.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.cause}
}

// sentinelOf returns the sentinel for an error of the host. The default is errIO.
func sentinelOf(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotExist
	}
	errno, _ := errors.AsType[syscall.Errno](err)
	switch errno {
	case syscall.ENOTEMPTY:
		return ErrNotEmpty
	case syscall.ENOTDIR:
		return ErrNotDir
	case syscall.EISDIR:
		return ErrIsDir
	case syscall.EINVAL:
		return ErrInvalid
	case syscall.ELOOP:
		return ErrLoop
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EMLINK:
		return ErrNoSpace
	case syscall.EMFILE, syscall.ENFILE:
		return ErrTooManyOpen
	case syscall.ENAMETOOLONG:
		return ErrNameTooLong
	case syscall.EFBIG, syscall.EOVERFLOW:
		return ErrTooLarge
	case syscall.EXDEV:
		return ErrCrossDevice
	case syscall.EBADF:
		return ErrBadHandle
	case syscall.EBUSY, syscall.ETXTBSY:
		return ErrBusy
	case syscall.EROFS:
		return ErrReadOnly
	}
	if sentinel := systemSentinel(errno); sentinel != nil {
		return sentinel
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return ErrNotSupported
	case errors.Is(err, fs.ErrExist):
		return ErrExist
	case errors.Is(err, fs.ErrPermission):
		return ErrDenied
	case errors.Is(err, fs.ErrClosed):
		return ErrBadHandle
	default:
		return errIO
	}
}

// escapeOf returns the error that os.Root returns for a path that leaves it. The standard library
// does not export this error, so escapeOf provokes it.
func escapeOf(root *os.Root) error {
	_, err := root.Lstat("..")
	var refused *fs.PathError
	if !errors.As(err, &refused) || refused.Err == nil {
		return fmt.Errorf("%w: the system's root does not refuse \"..\"", ErrNotSupported)
	}
	return refused.Err
}
