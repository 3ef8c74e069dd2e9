//go:build linux

package engine

import (
	"bytes"
	"context"
	"os"
	goruntime "runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mostKeptPages is the maximum number of written pages that a memory keeps between two runs. Up to
// this number, copying the image over a page is cheaper than a page fault. Beyond it, the pages are
// returned to the system.
const mostKeptPages = 1024

// written tracks the private pages of a memory. The zero value knows of none.
type written struct {
	pages   []pageSpan
	known   bool // pages lists all pages written before the last run
	most    int  // the largest size of the memory since it last had no private pages
	peak    int  // the largest size of the memory
	regions []pageRegion
}

// held returns the size of the lists of pages, and of the system's page tables, which stay when pages are given back.
func (w *written) held() int64 {
	const entryBytes = 8
	return int64(w.peak/systemPage*entryBytes) + int64(cap(w.pages))*int64(unsafe.Sizeof(pageSpan{})) +
		int64(cap(w.regions))*int64(unsafe.Sizeof(pageRegion{}))
}

// isWatchable reports whether a watch for faults can save the scan after the next run.
func (m *linearMemory) isWatchable(scanner *pageScanner) bool {
	return m.written.known && scanner != nil && scanner.faults
}

// survey finds the pages that were written, unless the run had no faults. It returns the number of bytes that a reset
// gives back to the system: 0 if the memory keeps them, at most muchWritten if that many are too many, and otherwise an
// upper bound.
func (m *linearMemory) survey(scanner *pageScanner, hadFaults bool) (returned int64) {
	w := &m.written
	w.most, w.peak = max(w.most, int(m.size)), max(w.peak, int(m.size))
	if w.known && !hadFaults {
		return 0
	}
	pages := w.find(m.reserved[:min(w.most, len(m.reserved))], scanner)
	if w.known = pages <= mostKeptPages; w.known {
		return 0
	}
	return int64(pages) * systemPage
}

// restore resets the memory to its image after a survey: written pages are overwritten or cleared, and no other page is
// touched. It returns the number of private bytes that the memory keeps.
func (m *linearMemory) restore() (kept int64, err error) {
	w := &m.written
	memory := m.reserved[:w.most] // memory beyond the current size may be left from an earlier run
	if !w.known {
		w.most = 0
		return 0, unix.Madvise(memory, unix.MADV_DONTNEED)
	}
	for _, span := range w.pages {
		n := 0
		if span.from < len(m.image.memory) {
			n = copy(memory[span.from:span.to], m.image.memory[span.from:])
		}
		clear(memory[span.from+n : span.to])
		kept += int64(span.to - span.from)
	}
	return kept, nil
}

// find lists the written pages, if they are at most mostKeptPages, and returns their number. It counts up to
// muchWritten bytes. If the pages cannot be determined, it returns the number of all of them, and more than
// mostKeptPages.
func (w *written) find(memory []byte, scanner *pageScanner) (pages int) {
	w.pages = w.pages[:0]
	all := max(len(memory)/systemPage, mostKeptPages+1)
	if scanner == nil {
		return all
	}
	if w.regions == nil {
		w.regions = make([]pageRegion, regionsAtOnce)
	}
	err := scanner.scan(memory, w.regions, func(from, to int) bool {
		if pages += (to - from) / systemPage; pages <= mostKeptPages {
			w.pages = append(w.pages, pageSpan{from, to})
		}
		return pages < muchWritten/systemPage
	})
	if err != nil {
		return all
	}
	return pages
}

// pageScanner finds the written pages of a private mapping: the kernel copied them, so they no
// longer belong to the file. It uses PAGEMAP_SCAN, available since Linux 6.7
// (Documentation/admin-guide/mm/pagemap.rst). It is safe for concurrent use. A nil scanner means
// that the system has none.
type pageScanner struct {
	file       *os.File
	descriptor uintptr
	faults     bool // page faults can be counted, see faultWatch
}

// newPageScanner returns a scanner, or nil if the kernel has none that works.
func newPageScanner(ctx context.Context) *pageScanner {
	file, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	s := &pageScanner{file: file, descriptor: file.Fd()}
	if !s.works(ctx) {
		_ = file.Close()
		return nil
	}
	return s
}

func (s *pageScanner) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
}

// pageRegion is a range of pages, as addresses; struct page_region.
type pageRegion struct{ start, end, categories uint64 }

// regionsAtOnce is the number of ranges that one request returns.
const regionsAtOnce = 128

// scanArguments is struct pm_scan_arg.
type scanArguments struct {
	size, flags, start, end, walkEnd, regions, regionsLength, maxPages uint64
	inverted, all, anyOf, returned                                     uint64
}

// Page categories, and the ioctl request.
const (
	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsZero    = 1 << 5 // the shared page that the system has for memory that was only read

	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
)

// scan calls visit with ranges of written pages of memory, as offsets in ascending order, until
// visit returns false. Swapped-out pages are included, since they keep their contents. The buffer
// must not be empty and must be on the heap, which does not move.
func (s *pageScanner) scan(memory []byte, buffer []pageRegion, visit func(from, to int) bool) error {
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	end := base + uint64(len(memory))
	for at := base; at < end; {
		a := scanArguments{
			start: at, end: end, regions: uint64(uintptr(unsafe.Pointer(&buffer[0]))), regionsLength: uint64(len(buffer)),
			maxPages: muchWritten / systemPage,
			inverted: pageIsFile | pageIsZero, all: pageIsFile | pageIsZero, anyOf: pageIsPresent | pageIsSwapped,
			returned: pageIsPresent,
		}
		a.size = uint64(unsafe.Sizeof(a))
		found, _, errno := unix.Syscall(unix.SYS_IOCTL, s.descriptor, pagemapScan, uintptr(unsafe.Pointer(&a)))
		goruntime.KeepAlive(buffer)
		if errno != 0 {
			return errno
		}
		for _, region := range buffer[:found] {
			if !visit(int(region.start-base), int(region.end-base)) {
				return nil
			}
		}
		if a.walkEnd <= at {
			return unix.EIO
		}
		at = a.walkEnd
	}
	return nil
}

// works tests the scanner on two pages of an image and one after it. All are read, and the second is written.
func (s *pageScanner) works(ctx context.Context) bool {
	contents := bytes.Repeat([]byte{1}, 2*systemPage)
	i, err := newImage(ctx, contents, allOf(contents), nil)
	if err != nil {
		return false
	}
	defer func() { _ = i.close() }()
	memory, err := reserve(3 * systemPage)
	if err != nil {
		return false
	}
	defer release(memory)
	if _, err := i.mapOnto(memory, nil); err != nil {
		return false
	}
	_ = memory[0] + memory[systemPage] + memory[2*systemPage] // read only
	s.faults = faultsShow(func() { memory[systemPage] = 2 })
	var found []int
	err = s.scan(memory, make([]pageRegion, regionsAtOnce), func(from, to int) bool {
		found = append(found, from, to)
		return true
	})
	return err == nil && slices.Equal(found, []int{systemPage, 2 * systemPage})
}

// faultsShow reports whether the first write to a page shows in the count of faults, and a later
// write does not.
func faultsShow(write func()) bool {
	var w faultWatch
	w.begin()
	write()
	if w.end() {
		return false
	}
	for range 10 { // unrelated faults may occur
		w.begin()
		write()
		if w.end() {
			return true
		}
	}
	return false
}
