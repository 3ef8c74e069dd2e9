//go:build unix && !race

package engine

import "golang.org/x/sys/unix"

// limitProcess limits the resources of this process from now on. If it exceeds them, the system
// kills it or the Go runtime exits.
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
