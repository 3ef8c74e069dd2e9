//go:build linux

package engine

import "golang.org/x/sys/unix"

// mapNoReserve keeps reserved address space out of the system's commit accounting.
const mapNoReserve = unix.MAP_NORESERVE

// smallPagesBelow is how much memory is backed by pages of the ordinary size.
const smallPagesBelow = 16 << 20

// preferLargePages asks for large pages where a memory is not small.
func preferLargePages(memory []byte) {
	if len(memory) > smallPagesBelow {
		// A kernel without them refuses, and pages stay small.
		_ = unix.Madvise(memory[smallPagesBelow:], unix.MADV_HUGEPAGE)
	}
}
