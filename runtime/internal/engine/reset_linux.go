//go:build linux

package engine

import (
	"os"
	goruntime "runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mostKeptPages is how many written pages a memory keeps between two runs. Copying the image
// over a page is cheaper than a page fault, but for more of them memory goes back to the
// system.
const mostKeptPages = 1024

// written are the pages that a memory has for itself. The zero value knows of none.
type written struct {
	pages   []pageSpan
	known   bool // they are all that were written before the last run
	most    int  // the largest size of the memory since it had no such pages
	regions []pageRegion
	faults  faultWatch
}

// watch prepares for a run. Where pages may be large it watches nothing: the system makes
// large pages of small ones by itself, and so gives a memory pages without a fault.
func (m *linearMemory) watch(scanner *pageScanner) {
	if m.written.known && scanner != nil && scanner.faults && m.written.most <= smallPagesBelow {
		m.written.faults.begin()
	}
}

// restore sets the memory back to its image: what was written is copied or cleared, and the
// rest left alone. It returns how many bytes the memory keeps for itself.
func (m *linearMemory) restore(scanner *pageScanner) (kept int64, err error) {
	w := &m.written
	w.most = max(w.most, int(m.size))
	memory := m.reserved[:w.most] // what is beyond its size may be kept from another run
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

// find asks which pages were written. It fails, or returns false, where they are too many, or
// nobody knows.
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

// pageScanner finds the pages of a private mapping that were written: the kernel copied
// them, so they no longer belong to the file. It asks with PAGEMAP_SCAN, which Linux has
// since 6.7 (Documentation/admin-guide/mm/pagemap.rst). A nil scanner finds nothing out.
// It is safe for concurrent use.
type pageScanner struct {
	file       *os.File
	descriptor uintptr
	faults     bool // page faults are counted, see faultWatch
}

// newPageScanner returns a scanner, or nil where the kernel has none that works.
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

// pageRegion is a run of pages, as addresses; struct page_region.
type pageRegion struct{ start, end, categories uint64 }

// regionsAtOnce is how many runs of pages one request finds.
const regionsAtOnce = 128

// scanArguments is struct pm_scan_arg.
type scanArguments struct {
	size, flags, start, end, walkEnd, regions, regionsLength, maxPages uint64
	inverted, all, anyOf, returned                                     uint64
}

// Categories of pages, and the request.
const (
	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4

	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
)

// scan calls visit with runs of written pages of memory, as offsets, in order, until it
// returns false. Pages that the system has swapped out count: they come back as they were.
// The buffer must be on the heap, which does not move, and not empty.
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
	if i.mapOnto(memory) != nil {
		return false
	}
	_ = memory[0] + memory[systemPage] + memory[2*systemPage] // read only
	s.faults = faultsShow(func() { memory[systemPage] = 1 })
	var found []int
	err = s.scan(memory, make([]pageRegion, regionsAtOnce), func(from, to int) bool {
		found = append(found, from, to)
		return true
	})
	// A page that was only read, beyond the file, may count as written.
	return err == nil && len(found) >= 2 && found[0] == systemPage
}

// faultsShow reports whether a page that something writes to shows in the count of faults, and
// one that was written before does not.
func faultsShow(write func()) bool {
	var w faultWatch
	w.begin()
	write()
	if w.end() {
		return false
	}
	for range 10 { // others may fault too
		w.begin()
		write()
		if w.end() {
			return true
		}
	}
	return false
}
