//go:build unix

package engine

import "golang.org/x/sys/unix"

// reserve maps zeroed pages. They cost nothing until they are touched, and are returned to the
// system immediately when released, independent of the garbage collector.
func reserve(size uint64) ([]byte, error) {
	if size == 0 {
		return []byte{}, nil
	}
	memory, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|mapNoReserve)
	if err != nil {
		return nil, err
	}
	if err := useSmallPages(memory); err != nil {
		release(memory)
		return nil, err
	}
	return memory, nil
}

func release(memory []byte) {
	if len(memory) > 0 {
		// It fails only for memory that reserve did not return.
		_ = unix.Munmap(memory)
	}
}
