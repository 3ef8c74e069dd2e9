package files

import (
	"os"
	"syscall"
	"time"
)

// detailsOf returns the details that os.FileInfo does not have. The creation time of a file never changes, so it serves
// as an inexact key. The number of links is not known, since it requires a handle.
func detailsOf(info os.FileInfo) details {
	d := details{accessed: info.ModTime(), changed: info.ModTime()}
	if data, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		d.accessed = time.Unix(0, data.LastAccessTime.Nanoseconds())
		d.key.a = uint64(data.CreationTime.Nanoseconds())
	}
	return d
}
