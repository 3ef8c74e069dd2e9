//go:build linux

package engine

import "golang.org/x/sys/unix"

// mapNoReserve keeps reserved address space out of the system's commit accounting.
const mapNoReserve = unix.MAP_NORESERVE

// smallPagesBelow is the number of bytes that are backed by pages of the ordinary size.
const smallPagesBelow = 16 << 20

// choosePages requests large pages beyond smallPagesBelow, and small ones below. A kernel without
// large pages refuses, and all pages stay small.
func choosePages(memory []byte) {
	_ = unix.Madvise(memory[:min(len(memory), smallPagesBelow)], unix.MADV_NOHUGEPAGE)
	if len(memory) > smallPagesBelow {
		_ = unix.Madvise(memory[smallPagesBelow:], unix.MADV_HUGEPAGE)
	}
}
