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
	return map[Errno]string{
		Denied:       "permission denied",
		ReadOnly:     "read-only file system",
		NotExist:     "no such file or directory",
		Exist:        "file exists",
		NotDir:       "not a directory",
		IsDir:        "is a directory",
		NotEmpty:     "directory not empty",
		Invalid:      "invalid argument",
		Loop:         "too many levels of symbolic links",
		NoSpace:      "no space left",
		TooManyOpen:  "too many open files",
		NameTooLong:  "file name too long",
		TooLarge:     "file too large",
		CrossDevice:  "cross-device link",
		NotSupported: "not supported",
		BadHandle:    "bad file handle",
		Busy:         "resource busy",
		IO:           "input/output error",
	}[e]
}
