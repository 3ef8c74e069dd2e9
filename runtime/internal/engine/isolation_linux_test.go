//go:build !race

package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// These tests are about pages that an instance keeps from one run to the next: a run that
// writes to them again does so without the system's notice.

// performAll runs operations in the pooled instance, and returns the guest's reports.
func (s *subject) performAll(t *testing.T, operations ...operation) []uint64 {
	t.Helper()
	in := &session{script: operations}
	_, err := s.run(context.WithValue(t.Context(), sessionKey{}, in), 0)
	require.NoError(t, err)
	return in.reports
}

const secret = 0x5ec2e7

// TestPagesBeyondSmallerRunsAreReset: pages that a run keeps beyond the memory of the next one are still there for the
// one after that.
func TestPagesBeyondSmallerRunsAreReset(t *testing.T) {
	const beyond = startPages << 16
	grow := operation{code: opGrow, a: 1}
	for _, resumed := range []bool{false, true} {
		v := variant{scripted{}, resumed, true}
		t.Run(v.String(), func(t *testing.T) {
			s := v.subject(t, 0)
			for n := range uint32(8) { // the smaller run writes to a new page each time
				s.performAll(t, grow, operation{opStore, beyond, 1, 0})
				s.performAll(t, operation{opStore, (8 + n) * systemPage, 1, 0})
				s.performAll(t, grow, operation{opStore, beyond, secret, 0})
				got := s.performAll(t, grow, operation{code: opLoad, a: beyond})
				require.EqualValues(t, 0, got[1])
			}
		})
	}
}

// TestPagesAreNotCollapsed: where the system makes one large page of small ones, as it does by itself in time, a memory
// has pages that nothing wrote. No memory of a guest has such pages. The control collapses other pages.
func TestPagesAreNotCollapsed(t *testing.T) {
	const large = 2 * mebibyte
	collapse := func(memory []byte) (err error) {
		at := -int(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) & (large - 1)
		memory = memory[at : at+large]
		for n := range memory {
			memory[n] = 1
		}
		for range 100 { // it may be short of large pages
			if err = unix.Madvise(memory, unix.MADV_COLLAPSE); err == nil {
				return nil
			}
		}
		return err
	}
	s := variant{scripted{}, false, true}.subject(t, 0)
	s.performAll(t)
	i := s.pooled()[0]
	require.ErrorIs(t, collapse(i.memory.reserved), unix.EINVAL)
	require.ErrorIs(t, collapse(i.memory.reserved[len(i.memory.image.memory):]), unix.EINVAL)
	i.wroteUnseen()

	others, err := unix.Mmap(-1, 0, 2*large, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer release(others)
	require.NoError(t, collapse(others))
}

// mostKeptBytes is the maximum size of the written memory that an instance keeps between two runs.
const mostKeptBytes = mostKeptPages * systemPage

// pressMemory treats the memory of an instance and its image as the system does when memory is short, or when it tidies
// up: it takes pages away, which come back when they are touched, or makes large pages of small ones.
func pressMemory(random *rand.Rand, i *instance) {
	memory, image := i.memory.reserved, i.memory.image.memory
	switch random.IntN(5) {
	case 0:
		_ = unix.Madvise(memory, unix.MADV_COLD)
		_ = unix.Madvise(image, unix.MADV_COLD)
	case 1:
		discard(memory)
		discard(image)
	case 2:
		_ = unix.Madvise(image, unix.MADV_DONTNEED) // the image's own view of its file
		discard(memory)
	case 3:
		collapse(memory[len(image):])
	case 4:
		_ = unix.Madvise(memory, unix.MADV_POPULATE_READ)
	}
}

// collapse makes large pages of the memory beyond an image, where it has pages already.
func collapse(memory []byte) {
	const large = 2 * mebibyte
	first := -int(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) & (large - 1)
	for at := first; at+large <= len(memory); at += large {
		_ = unix.Madvise(memory[at:at+large], unix.MADV_COLLAPSE)
	}
}

// Bits of an entry of /proc/self/pagemap.
const (
	entryPresent = 1 << 63
	entrySwapped = 1 << 62
)

// entry returns the system's pagemap entry for a page of memory.
func entry(t *testing.T, page []byte) uint64 {
	t.Helper()
	file, err := os.Open("/proc/self/pagemap")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var bits [8]byte
	number := uintptr(unsafe.Pointer(unsafe.SliceData(page))) / systemPage
	_, err = file.ReadAt(bits[:], int64(number)*8)
	require.NoError(t, err)
	return binary.NativeEndian.Uint64(bits[:])
}

// discarded asks the system to take a page away until it has, or has been asked often: it may
// have the page in hand.
func discarded(t *testing.T, page []byte) bool {
	t.Helper()
	for range 100 {
		if discard(page); entry(t, page)&entryPresent == 0 {
			return true
		}
	}
	return false
}

// imagedMemory is memory of six pages, the first four of them an image's. Page 0 was read,
// pages 1 and 4 were written.
func imagedMemory(t *testing.T) []byte {
	t.Helper()
	contents := bytes.Repeat([]byte{7}, 4*systemPage)
	i, err := newImage(t.Context(), contents, allOf(contents), nil)
	require.NoError(t, err)
	memory, err := reserve(6 * systemPage)
	require.NoError(t, err)
	t.Cleanup(func() {
		release(memory)
		require.NoError(t, i.close())
	})
	_, err = i.mapOnto(memory, nil)
	require.NoError(t, err)
	memory[1*systemPage], memory[4*systemPage] = memory[0]+1, memory[0]+1
	return memory
}

func pageOf(memory []byte, n int) []byte { return memory[n*systemPage : (n+1)*systemPage] }

// TestPressureTakesPagesAway: discard takes pages of an instance's memory away, with swap and without. Written pages
// stay, or come back.
func TestPressureTakesPagesAway(t *testing.T) {
	memory := imagedMemory(t)
	require.NotZero(t, entry(t, pageOf(memory, 0))&entryPresent, "the control")
	require.True(t, discarded(t, pageOf(memory, 0)), "a page that was read")
	discard(memory)
	assert.NotZero(t, entry(t, pageOf(memory, 1))&(entryPresent|entrySwapped), "a page that was written")
	assert.Equal(t, []byte{7, 8, 7, 7, 8, 0}, []byte{memory[0], memory[systemPage], memory[2*systemPage], memory[3*systemPage], memory[4*systemPage], memory[5*systemPage]})
}

// TestScannerFindsPagesThatAreNotPresent: pages that were written and swapped out. Where there is no swap, guards stand
// in for them: for them too the system has an entry that is neither present nor empty, and tells the scanner the same.
// The control asks only for present pages.
func TestScannerFindsPagesThatAreNotPresent(t *testing.T) {
	scanner := newPageScanner(t.Context())
	require.NotNil(t, scanner)
	defer func() { require.NoError(t, scanner.close()) }()
	memory := imagedMemory(t)
	for _, n := range []int{1, 4} {
		if page := pageOf(memory, n); !discarded(t, page) {
			require.NoError(t, unix.Madvise(page, unix.MADV_GUARD_INSTALL), "neither swap nor guards")
		}
		require.EqualValues(t, entrySwapped, entry(t, pageOf(memory, n))&(entryPresent|entrySwapped))
	}
	var found []int
	require.NoError(t, scanner.scan(memory, make([]pageRegion, regionsAtOnce), func(from, to int) bool {
		for at := from; at < to; at += systemPage {
			found = append(found, at/systemPage)
		}
		return true
	}))
	assert.Equal(t, []int{1, 4}, found)
	assert.Empty(t, presentAlone(t, scanner, memory))
}

// presentAlone returns the regions that a scan without pageIsSwapped finds.
func presentAlone(t *testing.T, scanner *pageScanner, memory []byte) []pageRegion {
	t.Helper()
	base, regions := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))), make([]pageRegion, regionsAtOnce)
	a := &scanArguments{start: base, end: base + uint64(len(memory)), regions: uint64(uintptr(unsafe.Pointer(&regions[0]))),
		regionsLength: uint64(len(regions)), inverted: pageIsFile, all: pageIsFile, anyOf: pageIsPresent, returned: pageIsPresent}
	a.size = uint64(unsafe.Sizeof(*a))
	found, _, errno := unix.Syscall(unix.SYS_IOCTL, scanner.descriptor, pagemapScan, uintptr(unsafe.Pointer(a)))
	goruntime.KeepAlive(regions)
	require.Zero(t, errno)
	return regions[:found]
}

// wroteUnseen is for tests that write to the memory of an instance outside its runs.
func (i *instance) wroteUnseen() { i.memory.written.known = false }
