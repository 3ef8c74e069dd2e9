// Package errno has the kinds of failures of file operations. They are errors and, as numbers, WASI's.
package errno

// Errno is a kind of failure: a WASI error number.
type Errno uint16

// The kinds of failures. IO is a failure of the host that matches no other.
const (
	Denied       Errno = 63
	ReadOnly     Errno = 69
	NotExist     Errno = 44
	Exist        Errno = 20
	NotDir       Errno = 54
	IsDir        Errno = 31
	NotEmpty     Errno = 55
	Invalid      Errno = 28
	Loop         Errno = 32
	NoSpace      Errno = 51
	TooManyOpen  Errno = 33
	NameTooLong  Errno = 37
	TooLarge     Errno = 22
	CrossDevice  Errno = 75
	NotSupported Errno = 58
	BadHandle    Errno = 8
	Busy         Errno = 10
	IO           Errno = 29
)

// Error returns the usual text for the kind.
func (e Errno) Error() string {
	switch e {
	case Denied:
		return "permission denied"
	case ReadOnly:
		return "read-only file system"
	case NotExist:
		return "no such file or directory"
	case Exist:
		return "file exists"
	case NotDir:
		return "not a directory"
	case IsDir:
		return "is a directory"
	case NotEmpty:
		return "directory not empty"
	case Invalid:
		return "invalid argument"
	case Loop:
		return "too many levels of symbolic links"
	case NoSpace:
		return "no space left"
	case TooManyOpen:
		return "too many open files"
	case NameTooLong:
		return "file name too long"
	case TooLarge:
		return "file too large"
	case CrossDevice:
		return "cross-device link"
	case NotSupported:
		return "not supported"
	case BadHandle:
		return "bad file handle"
	case Busy:
		return "resource busy"
	}
	return "input/output error"
}
