package kernels

// ackermann counts the calls of Ackermann's function, and how deep they nest.
type ackermann struct {
	calls          uint64
	depth, deepest uint32
}

// Ackermann computes Ackermann's function of 2 and size.
func Ackermann(size int32) uint64 {
	if size < 1 {
		return checksumSeed
	}
	var a ackermann
	value := a.value(2, uint32(size))
	return mix(mix(mix(checksumSeed, uint64(value)), a.calls), uint64(a.deepest))
}

func (a *ackermann) value(m, n uint32) uint32 {
	a.calls++
	a.depth++
	a.deepest = max(a.deepest, a.depth)
	var value uint32
	switch {
	case m == 0:
		value = n + 1
	case n == 0:
		value = a.value(m-1, 1)
	default:
		value = a.value(m-1, a.value(m, n-1))
	}
	a.depth--
	return value
}
