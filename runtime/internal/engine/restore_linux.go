//go:build linux

package engine

import "golang.org/x/sys/unix"

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
