package kernels

import "math"

// Matrix multiplies two random matrices of size × size floating-point numbers.
func Matrix(size int32) uint64 {
	n := int(max(size, 0))
	source := random(3)
	a, b := randomMatrix(&source, n), randomMatrix(&source, n)
	checksum := uint64(checksumSeed)
	for _, v := range multiply(a, b, n) {
		checksum = mix(checksum, math.Float64bits(v))
	}
	return checksum
}

func randomMatrix(source *random, n int) []float64 {
	cells := make([]float64, n*n)
	for i := range cells {
		cells[i] = source.unit()
	}
	return cells
}

func multiply(a, b []float64, n int) []float64 {
	product := make([]float64, n*n)
	for row := range n {
		for column := range n {
			var sum float64
			for k := range n {
				// The conversion keeps platforms with a fused multiply-add from rounding differently.
				sum += float64(a[row*n+k] * b[k*n+column])
			}
			product[row*n+column] = sum
		}
	}
	return product
}
