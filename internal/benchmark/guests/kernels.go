package guests

import "github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"

// Kernel is one compute kernel: a function that the modules of [Kernels], [Untuned] or [Recursive] export under its
// name.
type Kernel struct {
	Name string
	// Size keeps the kernel busy for 5 to 25 ms in C on plain wazero, on a
	// machine of 2026.
	Size int32
	// Checksum is the result for Size in every language.
	Checksum uint64
	// Native is the kernel in Go, in this process.
	Native kernels.Kernel
}

// AllKernels returns the kernels that metering was tuned on, in a fixed order.
func AllKernels() []Kernel {
	return []Kernel{
		{"spin", 5_000_000, 0xb4b5a06d8365e5ea, kernels.Spin},
		{"sha256", 512 << 10, 0x1d2d3098b68a01c1, kernels.SHA256},
		{"crc32", 64, 0x000000001293a2c2, kernels.CRC32},
		{"matrix", 160, 0xc02eea932de027d4, kernels.Matrix},
		{"nbody", 60_000, 0xc75ad47655878d90, kernels.NBody},
		{"sieve", 1_000_000, 0x56eca2ee1966afe6, kernels.Sieve},
		{"fannkuch", 9, 0xf4630c393026f372, kernels.Fannkuch},
		{"quicksort", 60_000, 0x1c0b68f5293ea0bf, kernels.Quicksort},
		{"json", 4_000, 0x8a8970bbf333f320, kernels.JSON},
		{"hash_map", 30_000, 0x8100e7375336b728, kernels.HashMap},
		{"mandelbrot", 320, 0xfd40c5aff16b1396, kernels.Mandelbrot},
		{"levenshtein", 2_000, 0xaf67c84c86089690, kernels.Levenshtein},
	}
}

// UntunedKernels returns kernels that metering was not tuned on, in a fixed order. Their cost of metering is a better
// estimate of its cost for unknown programs. That stays true only while no change to metering is chosen by its effect
// on them.
func UntunedKernels() []Kernel {
	return []Kernel{
		{"lz77", 200_000, 0x19b009821e38bc4a, kernels.LZ77},
		{"regex", 600, 0xb96450c1db260785, kernels.Regex},
		{"interpreter", 5_000, 0x1a624d4a313665e0, kernels.Interpreter},
		{"expression", 500, 0x089ac1272bbcbd69, kernels.Expression},
	}
}

// RecursiveKernels returns kernels that mostly call themselves, in a fixed order. Metering tests at
// calls and where functions that recurse end, which costs such programs most.
func RecursiveKernels() []Kernel {
	return []Kernel{
		{"fib", 30, 0x93f98b304c3183ec, kernels.Fib},
		{"ackermann", 800, 0x84a647532eb5d9c3, kernels.Ackermann},
		{"tree_walk", 20_000, 0x56a2687b67efcc35, kernels.TreeWalk},
		{"evaluator", 1_000, 0x348d3bdaeef345b2, kernels.Evaluator},
		{"sort", 100_000, 0xc803d629ada15e33, kernels.Sort},
		{"parser", 1_000, 0x156f61f12ff2c3cd, kernels.Parser},
		{"mutual", 60, 0x76e913601f11e00f, kernels.Mutual},
		{"table", 1_000, 0x01bf6e73bf9fbeaa, kernels.Table},
	}
}
