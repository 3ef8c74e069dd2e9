package files

import (
	"os"
	"syscall"
	"time"
)

// detailsOf returns the details that os.FileInfo does not have. The widths of the fields differ between architectures.
func detailsOf(info os.FileInfo) details {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return details{accessed: info.ModTime(), changed: info.ModTime()}
	}
	return details{
		accessed: time.Unix(stat.Atim.Unix()),
		changed:  time.Unix(stat.Ctim.Unix()),
		links:    uint64(stat.Nlink),
		key:      fileKey{a: uint64(stat.Dev), b: uint64(stat.Ino), exact: true},
	}
}
