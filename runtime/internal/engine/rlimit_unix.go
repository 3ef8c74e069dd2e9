//go:build unix

package engine

import "golang.org/x/sys/unix"

// lower sets a limit of this process, unless it has a lower one already: the hard one it
// may not raise, and the soft one is somebody's choice.
func lower(resource int, value uint64) error {
	var present unix.Rlimit
	if err := unix.Getrlimit(resource, &present); err != nil {
		return err
	}
	value = min(value, uint64(present.Cur), uint64(present.Max))
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
}
