//go:build linux

package engine

import "golang.org/x/sys/unix"

// mostKeptPages is how many written pages a memory keeps between two runs. Copying the image
// over a page is cheaper than a page fault, but for more of them memory goes back to the
// system.
const mostKeptPages = 1024

// restore sets memory back to the image: what was written is copied or cleared, and the
// rest left alone. The regions are kept for the next time.
func (i *image) restore(memory []byte, scanner *pageScanner, regions *[]pageRegion) error {
	if len(memory) == 0 {
		return nil
	}
	if scanner == nil {
		return unix.Madvise(memory, unix.MADV_DONTNEED)
	}
	if *regions == nil {
		*regions = make([]pageRegion, regionsAtOnce)
	}
	pages := 0
	err := scanner.scan(memory, *regions, func(from, to int) bool {
		if pages += (to - from) / systemPage; pages > mostKeptPages {
			return false
		}
		n := 0
		if from < len(i.memory) {
			n = copy(memory[from:to], i.memory[from:])
		}
		clear(memory[from+n : to])
		return true
	})
	if err != nil || pages > mostKeptPages {
		return unix.Madvise(memory, unix.MADV_DONTNEED)
	}
	return nil
}
