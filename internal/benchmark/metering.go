package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// kernelGroup is kernels that are reported together.
type kernelGroup struct {
	name    string // also of its folder
	kernels []guests.Kernel
	// command returns the WASI command that runs the kernels.
	command func(ctx context.Context, language guests.Language, dir string) ([]byte, error)
	into    *[]Metering
}

// kernelRunners are the kernels in one language, run in three ways. The caller must close them.
type kernelRunners struct {
	plain, closing *wazeroSession
	metered        *caissonSession
}

// openKernels compiles for all three concurrently, which is not measured.
func openKernels(
	ctx context.Context, name string, module []byte, dir string, compiler runtime.Compiler,
) (*kernelRunners, error) {
	command, err := newCaissonTool(filepath.Join(dir, name), kernelManifest, module, compiler)
	if err != nil {
		return nil, err
	}
	var k kernelRunners
	err = together([]func() error{
		func() (err error) {
			k.plain, err = plainWazero{module: module}.start(ctx, filepath.Join(dir, "wazero"))
			return err
		},
		func() (err error) {
			k.closing, err = plainWazero{module: module, closeOnContextDone: true}.start(ctx, filepath.Join(dir, "wazero"))
			return err
		},
		func() (err error) { k.metered, err = command.start(ctx, filepath.Join(dir, "caisson")); return err },
	}, func(open func() error) error { return open() })
	if err != nil {
		return nil, errors.Join(err, k.close(ctx))
	}
	return &k, nil
}

func runWazero(ctx context.Context, s *wazeroSession, kernel guests.Kernel) ([]byte, error) {
	return s.run(ctx, bytes.NewReader(nil), kernel.Name, strconv.Itoa(int(kernel.Size)))
}

func runMetered(ctx context.Context, s *caissonSession, kernel guests.Kernel) ([]byte, error) {
	arguments, err := tool.ParseArguments(fmt.Sprintf(`{"kernel": %q, "size": %d}`, kernel.Name, kernel.Size))
	if err != nil {
		return nil, err
	}
	output, err := s.invoke(ctx, arguments)
	return []byte(output), err
}

func (k *kernelRunners) close(ctx context.Context) error {
	return closeAll(ctx, []session{k.plain, k.closing, k.metered})
}

// meteringTurns is the minimum number of turns; the shortest time counts.
const meteringTurns = 2

// measure compares the three ways to run one kernel. The kernel runs only once with wazero's own way
// to stop a guest, because that takes as long as many turns of the others.
func (k *kernelRunners) measure(
	ctx context.Context, language guests.Language, kernel guests.Kernel, each time.Duration,
) (Metering, error) {
	ctx, cancel := context.WithCancel(ctx) // a context that cannot end would cost wazero nothing
	defer cancel()
	plain, metered, closing := best{kernel: kernel}, best{kernel: kernel}, best{kernel: kernel}
	end := time.Now().Add(each)
	for turn := 0; turn < meteringTurns || time.Now().Before(end); turn++ {
		if err := plain.take(runWazero(ctx, k.plain, kernel)); err != nil {
			return Metering{}, err
		}
		if err := metered.take(runMetered(ctx, k.metered, kernel)); err != nil {
			return Metering{}, err
		}
	}
	if err := closing.take(runWazero(ctx, k.closing, kernel)); err != nil {
		return Metering{}, err
	}
	price := metered.over(plain)
	return Metering{Kernel: kernel.Name, Guest: language, Stop: price, Fuel: price,
		CloseOnContextDone: closing.over(plain)}, nil
}

// best is the shortest time that a kernel took, or 0 if it has not run.
type best struct {
	kernel      guests.Kernel
	nanoseconds int64
}

// take parses and checks the output of the kernel, unless running it failed.
func (b *best) take(output []byte, err error) error {
	kernel := b.kernel
	if err != nil {
		return fmt.Errorf("%s: %w", kernel.Name, err)
	}
	var checksum uint64
	var nanoseconds int64
	if _, err := fmt.Sscanf(string(output), "%x %d\n", &checksum, &nanoseconds); err != nil {
		return fmt.Errorf("%s: %w: %q", kernel.Name, guests.ErrAnswer, output)
	}
	if checksum != kernel.Checksum || nanoseconds <= 0 {
		return fmt.Errorf("%s: %w: checksum %x instead of %x in %d ns", kernel.Name, guests.ErrAnswer, checksum,
			kernel.Checksum, nanoseconds)
	}
	if b.nanoseconds == 0 || nanoseconds < b.nanoseconds {
		b.nanoseconds = nanoseconds
	}
	return nil
}

func (b best) over(base best) float64 { return float64(b.nanoseconds) / float64(base.nanoseconds) }

// smaller returns a kernel with less work.
func smaller(kernel guests.Kernel) guests.Kernel {
	if kernel.Name == "fannkuch" {
		kernel.Size-- // its work grows with the factorial
	} else {
		kernel.Size /= 2
	}
	kernel.Checksum = kernel.Native(kernel.Size)
	return kernel
}
