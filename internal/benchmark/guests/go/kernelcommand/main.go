// Command kernelcommand runs one of the kernels that metering was tuned on.
package main

import (
	"github.com/caisson-run/caisson/internal/benchmark/guests/go/command"
	"github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"
)

func main() {
	command.Main(map[string]kernels.Kernel{
		"spin": kernels.Spin, "sha256": kernels.SHA256, "crc32": kernels.CRC32, "matrix": kernels.Matrix,
		"nbody": kernels.NBody, "sieve": kernels.Sieve, "fannkuch": kernels.Fannkuch, "quicksort": kernels.Quicksort,
		"json": kernels.JSON, "hash_map": kernels.HashMap, "mandelbrot": kernels.Mandelbrot,
		"levenshtein": kernels.Levenshtein,
	})
}
