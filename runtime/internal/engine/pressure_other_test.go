//go:build !linux

package engine

import "math/rand/v2"

// mostKeptBytes: memories keep all that was written.
const mostKeptBytes = 0

func discard([]byte) {}

func pressMemory(*rand.Rand, *instance) {}

// wroteUnseen is for tests that write to the memory of an instance outside its runs.
func (*instance) wroteUnseen() {}
