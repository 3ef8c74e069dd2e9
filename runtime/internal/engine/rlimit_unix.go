//go:build unix

package engine

import "golang.org/x/sys/unix"

// lower sets a limit of this process, unless a lower one is set already: the process may not raise
// the hard limit, and the soft limit was set on purpose.
func lower(resource int, value uint64) error {
	var present unix.Rlimit
	if err := unix.Getrlimit(resource, &present); err != nil {
		return err
	}
	value = min(value, uint64(present.Cur), uint64(present.Max))
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
}
