package kernels

// Sieve finds the primes below size.
func Sieve(size int32) uint64 {
	n := int(max(size, 0))
	composite := make([]bool, n)
	var count, sum uint64
	for p := 2; p < n; p++ {
		if composite[p] {
			continue
		}
		count++
		sum += uint64(p)
		for multiple := 2 * p; multiple < n; multiple += p {
			composite[multiple] = true
		}
	}
	return mix(mix(checksumSeed, count), sum)
}
