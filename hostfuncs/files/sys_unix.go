//go:build unix

package files

import (
	"os"
	"syscall"
)

// openFlags are used for every open. A pipe or a terminal that replaces a file between the check
// and the open must neither block the call nor become the process's controlling terminal.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// systemSentinels are the [sentinels] for errors that only this system has.
var systemSentinels map[syscall.Errno]error

// validTarget reports whether a link's target is relative. os.Root checks whether it escapes.
func validTarget(target string) bool { return target != "" && target[0] != '/' }

// isUnlinked reports whether an open file no longer has a name.
func isUnlinked(info os.FileInfo) bool { return detailsOf(info).links == 0 }
