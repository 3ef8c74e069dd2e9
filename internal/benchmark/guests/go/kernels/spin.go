package kernels

// Spin is size turns of the smallest loop whose every turn needs the turn before.
func Spin(size int32) uint64 {
	turns := uint64(max(size, 0))
	x := turns
	for i := range turns {
		x = x*31 + (i ^ x>>3)
	}
	return x
}
