//go:build unix && race

package engine

import "golang.org/x/sys/unix"

// limitProcess limits the processor time. The race detector reserves more address space than any
// limit could allow.
func limitProcess(_, cpuSeconds uint64) error {
	return lower(unix.RLIMIT_CPU, cpuSeconds)
}
