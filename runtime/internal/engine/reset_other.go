//go:build !linux

package engine

import "context"

// pageScanner finds written pages on systems that can report them.
type pageScanner struct{}

func newPageScanner(context.Context) *pageScanner { return nil }

func (*pageScanner) close() error { return nil }

// written tracks private pages on systems that can report them.
type written struct{}

func (*written) held() int64 { return 0 }

func (*linearMemory) isWatchable(*pageScanner) bool { return false }

// survey returns the number of bytes that a reset rewrites.
func (m *linearMemory) survey(*pageScanner, bool) int64 { return int64(m.size) }

// restore resets the memory to its image. It rewrites and keeps all of it.
func (m *linearMemory) restore() (kept int64, err error) {
	n := copy(m.contents(), m.image.memory)
	clear(m.contents()[n:])
	return int64(m.size), nil
}

// faultWatch detects first writes to pages on systems that can report them.
type faultWatch struct{}

func (*faultWatch) begin() {}

func (*faultWatch) end() bool { return false }

func (*faultWatch) stop() {}

func (w *faultWatch) locksThread() bool { return false }
