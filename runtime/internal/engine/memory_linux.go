//go:build linux

package engine

import "golang.org/x/sys/unix"

// mapNoReserve keeps reserved address space out of the system's commit accounting.
const mapNoReserve = unix.MAP_NORESERVE

// smallPagesBelow is how much memory is backed by pages of the ordinary size.
const smallPagesBelow = 16 << 20

// choosePages asks for large pages where a memory is not small, and for small ones elsewhere.
// A kernel without large pages refuses, and pages stay small.
func choosePages(memory []byte) {
	_ = unix.Madvise(memory[:min(len(memory), smallPagesBelow)], unix.MADV_NOHUGEPAGE)
	if len(memory) > smallPagesBelow {
		_ = unix.Madvise(memory[smallPagesBelow:], unix.MADV_HUGEPAGE)
	}
}
