package engine

import "golang.org/x/sys/unix"

// discard asks the system to take the pages of a memory away, as it does under pressure:
// those that were written go to swap, where there is some.
func discard(memory []byte) {
	_ = unix.Madvise(memory[:len(memory)&^(systemPage-1)], unix.MADV_PAGEOUT)
}
