package kernels

import "math/bits"

const tableDepth = 24

// stepTable holds functions that call each other through the table, which of them their state says.
type stepTable [4]func(t *stepTable, depth uint32, state uint64) uint64

// Table starts size times in a random state.
func Table(size int32) uint64 {
	source := random(18)
	steps := stepTable{stepOnce, stepTwice, stepTurned, stepBehind}
	checksum := uint64(checksumSeed)
	for range size {
		checksum = mix(checksum, steps.next(tableDepth, mix(checksumSeed, uint64(source.next()))))
	}
	return checksum
}

func (t *stepTable) next(depth uint32, state uint64) uint64 {
	if depth == 0 {
		return state
	}
	return t[state>>40&3](t, depth-1, state)
}

func stepOnce(t *stepTable, depth uint32, state uint64) uint64 {
	return mix(t.next(depth, mix(state, 1)), uint64(depth))
}

func stepTwice(t *stepTable, depth uint32, state uint64) uint64 {
	first := t.next(depth, mix(state, 2))
	return mix(first, t.next(depth, mix(state, 3)))
}

func stepTurned(t *stepTable, depth uint32, state uint64) uint64 {
	return t.next(depth, bits.RotateLeft64(state, 13)) ^ state
}

func stepBehind(t *stepTable, depth uint32, state uint64) uint64 {
	return mix(state, t.next(depth, mix(state, 4)))
}
