//go:build linux

package engine

import (
	"errors"

	"golang.org/x/sys/unix"
)

// mapNoReserve keeps reserved address space out of the system's commit accounting.
const mapNoReserve = unix.MAP_NORESERVE

// useSmallPages has the system provide memory in pages of the ordinary size, even where large ones are its default. A
// store that touches a large page waits until the system has cleared it all, and nothing can stop the guest in a store.
func useSmallPages(memory []byte) error {
	err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE)
	if errors.Is(err, unix.EINVAL) { // the system has no large pages
		return nil
	}
	return err
}
