//go:build linux

package engine

import (
	"os"
	goruntime "runtime"
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
	regions []pageRegion
	faults  faultWatch
}

// held returns the size of the lists of pages.
func (w *written) held() int64 {
	return int64(cap(w.pages))*int64(unsafe.Sizeof(pageSpan{})) + int64(cap(w.regions))*int64(unsafe.Sizeof(pageRegion{}))
}

// watch prepares for a run. It does not watch memories that may have large pages: the system merges
// small pages into large ones on its own and so gives a memory private pages without a fault. Another
// memory of the run, if there is one, must be prepared already.
func (m *linearMemory) watch(scanner *pageScanner, other *linearMemory) {
	if !m.written.known || scanner == nil || !scanner.faults || m.written.most > smallPagesBelow {
		return
	}
	if other != nil {
		m.written.faults.beginWith(&other.written.faults)
		return
	}
	m.written.faults.begin()
}

// restore resets the memory to its image: written pages are overwritten or cleared, others are not
// touched. It returns how many private bytes the memory keeps.
func (m *linearMemory) restore(scanner *pageScanner) (kept int64, err error) {
	w := &m.written
	w.most = max(w.most, int(m.size))
	memory := m.reserved[:w.most] // memory beyond the current size may be left from an earlier run
	if !w.faults.end() || w.most > smallPagesBelow {
		if w.known, err = w.find(memory, scanner); err != nil || !w.known {
			w.most = 0
			return 0, unix.Madvise(memory, unix.MADV_DONTNEED)
		}
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

// find finds the written pages. It fails, or returns false, if there are too many or they cannot be
// determined.
func (w *written) find(memory []byte, scanner *pageScanner) (bool, error) {
	w.pages = w.pages[:0]
	if scanner == nil {
		return false, nil
	}
	if w.regions == nil {
		w.regions = make([]pageRegion, regionsAtOnce)
	}
	pages := 0
	err := scanner.scan(memory, w.regions, func(from, to int) bool {
		w.pages = append(w.pages, pageSpan{from, to})
		pages += (to - from) / systemPage
		return pages <= mostKeptPages
	})
	return err == nil && pages <= mostKeptPages, err
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
func newPageScanner() *pageScanner {
	file, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	s := &pageScanner{file: file, descriptor: file.Fd()}
	if !s.works() {
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
			inverted: pageIsFile, all: pageIsFile, anyOf: pageIsPresent | pageIsSwapped, returned: pageIsPresent,
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

// works tests the scanner on a mapping of two pages of which one is written.
func (s *pageScanner) works() bool {
	i, err := newImage(make([]byte, 2*systemPage), nil, nil)
	if err != nil {
		return false
	}
	defer func() { _ = i.close() }()
	memory, err := reserve(3 * systemPage)
	if err != nil {
		return false
	}
	defer release(memory)
	if _, err := i.mapOnto(memory); err != nil {
		return false
	}
	_ = memory[0] + memory[systemPage] + memory[2*systemPage] // read only
	s.faults = faultsShow(func() { memory[systemPage] = 1 })
	var found []int
	err = s.scan(memory, make([]pageRegion, regionsAtOnce), func(from, to int) bool {
		found = append(found, from, to)
		return true
	})
	// A page beyond the file that was only read may be reported as written.
	return err == nil && len(found) >= 2 && found[0] == systemPage
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
