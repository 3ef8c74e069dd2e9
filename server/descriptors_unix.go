//go:build unix

package server

import (
	"math"
	"syscall"
)

// maxDescriptors returns how many descriptors the process may have.
func maxDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32))
}
