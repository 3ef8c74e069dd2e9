//go:build !race

package engine

import (
	"context"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// These tests are about pages that an instance keeps from one run to the next: a run that
// writes to them again does so without the system's notice.

// performAll runs operations in the instance of the pool, and returns what the guest reported.
func (s *subject) performAll(t *testing.T, operations ...operation) []uint64 {
	t.Helper()
	in := &session{script: operations}
	_, err := s.run(context.WithValue(t.Context(), sessionKey{}, in), 0)
	require.NoError(t, err)
	return in.reports
}

const secret = 0x5ec2e7

// TestPagesBeyondSmallerRunsAreReset: what a run keeps beyond the memory of the next one is
// still there for the one after that.
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

// TestPagesAreNotCollapsed: where the system makes one large page of small ones, as it does by
// itself in time, a memory has pages that nothing wrote. Small memories have no such pages, and
// faults in others are not watched. The control collapses pages that may be.
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
	i.wroteUnseen()

	reserved, err := reserve(smallPagesBelow + 2*large)
	require.NoError(t, err)
	defer release(reserved)
	require.NoError(t, collapse(reserved[smallPagesBelow:]))
	memory := linearMemory{written: written{known: true, most: smallPagesBelow + 1}}
	memory.watch(s.engine.pages)
	assert.False(t, memory.written.faults.watching)
	memory.written.most--
	memory.watch(s.engine.pages)
	assert.True(t, memory.written.faults.watching)
	memory.leaveThread()
}
