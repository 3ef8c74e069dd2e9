package kernels

// Mutual computes Hofstadter's female and male sequences up to size. Each is defined by the other.
func Mutual(size int32) uint64 {
	checksum := uint64(checksumSeed)
	for n := int32(1); n <= size; n++ {
		checksum = mix(mix(checksum, uint64(female(uint32(n)))), uint64(male(uint32(n))))
	}
	return checksum
}

func female(n uint32) uint32 {
	if n == 0 {
		return 1
	}
	return n - male(female(n-1))
}

func male(n uint32) uint32 {
	if n == 0 {
		return 0
	}
	return n - female(male(n-1))
}
