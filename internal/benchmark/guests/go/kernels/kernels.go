// Package kernels is the compute kernels of the benchmarks in Go. The folders c and rust
// hold the same kernels in C and Rust: for the same size the three give the same
// checksum, so each checks the other two. The functions keep no state and may be called
// from several goroutines; a size below one gives a checksum of nothing.
package kernels

// Kernel computes its checksum over work of the given size.
type Kernel func(size int32) uint64

// random is a linear congruential generator with Knuth's MMIX constants. It is not a source of secrets: the kernels
// need the same numbers in three languages.
type random uint64

func (r *random) next() uint32 {
	*r = *r*6364136223846793005 + 1442695040888963407
	return uint32(*r >> 32)
}

// unit returns a number in [0, 1).
func (r *random) unit() float64 { return float64(r.next()) / (1 << 32) }

// bytes returns n random bytes.
func (r *random) bytes(n int) []byte {
	made := make([]byte, n)
	for i := range made {
		made[i] = byte(r.next())
	}
	return made
}

// checksumSeed is where every chain of mix begins.
const checksumSeed = 14695981039346656037

// mix folds a value into a checksum: FNV-1a over whole words.
func mix(checksum, value uint64) uint64 { return (checksum ^ value) * 1099511628211 }
