package kernels

// escapeLimit is after how many turns a point counts as one of the set.
const escapeLimit = 50

// Mandelbrot counts, for size × size points, the turns until each escapes.
func Mandelbrot(size int32) uint64 {
	checksum := uint64(checksumSeed)
	for row := range size {
		for column := range size {
			real := float64(2.5*float64(column))/float64(size) - 2
			imaginary := float64(2.5*float64(row))/float64(size) - 1.25
			checksum = mix(checksum, escapeTime(real, imaginary))
		}
	}
	return checksum
}

func escapeTime(real, imaginary float64) uint64 {
	var x, y float64
	for turn := range uint64(escapeLimit) {
		// The conversions keep a fused multiply-add from rounding differently.
		xx, yy := float64(x*x), float64(y*y)
		if xx+yy > 4 {
			return turn
		}
		x, y = xx-yy+real, float64(2*x*y)+imaginary
	}
	return escapeLimit
}
