// Command kernelcommand runs one kernel: kernelcommand NAME SIZE prints the checksum in 16
// hexadecimal digits and the nanoseconds that the kernel took by the guest's own clock,
// so that what starts and ends a program is not in the measure.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: kernelcommand NAME SIZE")
	}
	kernel := find(args[0])
	if kernel == nil {
		return fmt.Errorf("there is no kernel %q", args[0])
	}
	size, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil {
		return err
	}
	start := time.Now()
	checksum := kernel(int32(size))
	took := time.Since(start)
	_, err = fmt.Printf("%016x %d\n", checksum, took.Nanoseconds())
	return err
}

// find returns nil where there is no such kernel.
func find(name string) kernels.Kernel {
	return map[string]kernels.Kernel{
		"spin": kernels.Spin, "sha256": kernels.SHA256, "crc32": kernels.CRC32, "matrix": kernels.Matrix,
		"nbody": kernels.NBody, "sieve": kernels.Sieve, "fannkuch": kernels.Fannkuch, "quicksort": kernels.Quicksort,
		"json": kernels.JSON, "hash_map": kernels.HashMap, "mandelbrot": kernels.Mandelbrot, "levenshtein": kernels.Levenshtein,
	}[name]
}
