package kernels

// Fib makes the calls of Fibonacci's recursion for size, and folds their results.
func Fib(size int32) uint64 {
	if size < 1 {
		return checksumSeed
	}
	return fib(uint32(size))
}

func fib(n uint32) uint64 {
	if n < 2 {
		return uint64(n)
	}
	return mix(fib(n-1), fib(n-2))
}
