//go:build unix

package hostfile

import "syscall"

// nonBlocking has an open return at once, also that of a pipe.
const nonBlocking = syscall.O_NONBLOCK
