// Package command is what the kernels' WASI commands have in common: NAME SIZE as arguments
// prints the checksum in 16 hexadecimal digits and the nanoseconds that the kernel took by
// the guest's own clock, so that what starts and ends a program is not in the measure.
package command

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/caisson-run/caisson/internal/benchmark/guests/go/kernels"
)

// Main runs the kernel that the program's arguments name, and ends the program if it fails.
func Main(all map[string]kernels.Kernel) {
	if err := run(all, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(all map[string]kernels.Kernel, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: kernelcommand NAME SIZE")
	}
	kernel, found := all[args[0]]
	if !found {
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
