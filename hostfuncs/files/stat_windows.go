package files

import (
	"os"
	"syscall"
	"time"
)

// detailsOf reads what os.FileInfo does not say. The creation time never changes
// while a file lives, so it narrows the search for a file's identity. How many links
// a file has would need a handle, so that is not known.
func detailsOf(info os.FileInfo) details {
	d := details{accessed: info.ModTime(), changed: info.ModTime()}
	if data, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		d.accessed = time.Unix(0, data.LastAccessTime.Nanoseconds())
		d.key.a = uint64(data.CreationTime.Nanoseconds())
	}
	return d
}
