package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// The failures of this package. Every error it returns matches exactly one of them
// with errors.Is, except io.EOF, which reads return as it is, and a done context.
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
	ErrIO           = errors.New("input/output error")
)

// Error is the failure of one operation. Its text is safe to show to a guest: it
// holds guest paths only.
type Error struct {
	Op   string // what was being done: "open", "rename", …
	Path string // the guest's path, absolute; cut and free of control characters
	Err  error  // matches one of the sentinels of this package
	// Denial is the receipt, where a permission decided. It is nil otherwise. What would
	// allow an operation of a view stands in [View.Denials] alone.
	Denial *tool.Denial

	// cause is the host's error behind ErrIO. It may hold host paths.
	cause error
}

// Error returns the operation, the guest path and the sentinel's text; never the
// host's error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Path != "" {
		b.WriteString(" ")
		b.WriteString(e.Path)
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	if e.Denial != nil && e.Denial.Rule != "" {
		b.WriteString(": ")
		b.WriteString(e.Denial.Rule)
	}
	return b.String()
}

// Unwrap returns the sentinel and, for [ErrIO], the host's error, whose text is for
// the operator only.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.cause}
}

// errno pairs an error of the system with the sentinel that stands for it.
type errno struct{ host, sentinel error }

// sentinelOf returns the sentinel for an error of the host. What it does not know is
// [ErrIO].
func sentinelOf(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotExist
	}
	for _, e := range errnos() {
		if errors.Is(err, e.host) {
			return e.sentinel
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return ErrExist
	case errors.Is(err, fs.ErrPermission):
		return ErrDenied
	case errors.Is(err, fs.ErrClosed):
		return ErrBadHandle
	default:
		return ErrIO
	}
}

// escapeOf returns the error with which os.Root refuses a path that leaves it. The
// standard library does not export it, so the root is asked for a path that does.
func escapeOf(root *os.Root) error {
	_, err := root.Lstat("..")
	var refused *fs.PathError
	if !errors.As(err, &refused) || refused.Err == nil {
		return fmt.Errorf("%w: the system's root does not refuse \"..\"", ErrNotSupported)
	}
	return refused.Err
}
