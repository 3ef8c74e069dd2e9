//go:build unix && !race

package engine

import "golang.org/x/sys/unix"

// limitProcess bounds what this process may take from now on. Beyond it the system
// kills the process, or the Go runtime ends it.
func limitProcess(memoryBytes, cpuSeconds uint64) error {
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_AS, memoryBytes}, {unix.RLIMIT_CPU, cpuSeconds}, {unix.RLIMIT_CORE, 0},
	} {
		if err := lower(limit.resource, limit.value); err != nil {
			return err
		}
	}
	return nil
}
