package files

import (
	"os"
	"syscall"
	"time"
)

func detailsOf(info os.FileInfo) details {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return details{accessed: info.ModTime(), changed: info.ModTime()}
	}
	return details{
		accessed: time.Unix(stat.Atimespec.Unix()),
		changed:  time.Unix(stat.Ctimespec.Unix()),
		links:    uint64(stat.Nlink),
		key:      fileKey{a: uint64(stat.Dev), b: stat.Ino, exact: true},
	}
}
