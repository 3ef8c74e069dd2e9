// Package benchmark compares Caisson with its alternatives on the current machine: the same small
// tool natively, on plain wazero, on Extism's Go SDK and in Caisson's sandbox. It also measures the
// overhead of metering, and compares script tools with starting the native interpreter.
//
//	report, err := benchmark.Run(ctx, benchmark.Options{Compiler: compiler})
//	_, err = io.WriteString(w, report.Text())
//
// Compared schemes take turns on the same input, so that other load on the machine affects them
// alike, and every answer is checked. Only ratios are comparable between machines.
package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"time"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/runtime"
)

// Options say how much to measure. The zero value measures everything.
type Options struct {
	// Compiler compiles Caisson's modules.
	Compiler runtime.Compiler
	// Interpreters is where the interpreters of scripts are installed. Scripts are left out if it is empty.
	Interpreters interpreter.Folder
	// Time is the duration of the measurement of each row. Zero means 1 s, or 30 ms if Short.
	Time time.Duration
	// Short reduces the work of the kernels and leaves out 64 callers with 64 KiB each, which take longest.
	Short bool
	// Progress must run one step of the work, and may show its name. Nil shows nothing.
	Progress func(what string, work func())
}

const (
	standardTime = time.Second
	shortTime    = 30 * time.Millisecond
)

// The sizes of inputs, in bytes.
const (
	smallPayload = 100
	largePayload = 64 << 10
)

// Run runs the benchmarks. It takes minutes, or less than half a minute if Short, and uses all
// processors and much memory. It writes compiled code to a temporary folder, which it deletes.
//
// Report.LeftOut lists the measurements that are not possible on this machine, and why. A wrong answer is an error.
func Run(ctx context.Context, options Options) (_ *Report, err error) {
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return nil, fmt.Errorf("benchmark: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := newBench(options, dir)
	for _, step := range []func(context.Context) error{b.build, b.rows, b.executors, b.scripts, b.meterings} {
		if err := errors.Join(step(ctx), ctx.Err()); err != nil {
			return nil, err
		}
	}
	return b.report, nil
}

// bench is one run.
type bench struct {
	Options
	dir      string // the temporary folder
	report   *Report
	subjects []*subject
}

func newBench(options Options, dir string) *bench {
	b := &bench{Options: options, dir: dir}
	if b.Time == 0 {
		b.Time = standardTime
		if b.Short {
			b.Time = shortTime
		}
	}
	if b.Progress == nil {
		b.Progress = func(_ string, work func()) { work() }
	}
	b.report = &Report{
		Machine: Machine{goruntime.GOOS, goruntime.GOARCH, goruntime.GOMAXPROCS(0), goruntime.Version()},
		Rows:    []Row{}, Metering: []Metering{}, MeteringUntuned: []Metering{}, MeteringRecursive: []Metering{},
		Executor: []Executor{}, Scripts: []Script{}, LeftOut: []LeftOut{},
	}
	return b
}

// step runs one step of the work and shows its name.
func (b *bench) step(what string, work func() error) (err error) {
	b.Progress(what, func() { err = work() })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// rounds returns the number of turns that the time of a row is divided into. In each turn every
// caller makes at least one call, which takes long if there are many.
func (b *bench) rounds(callers int) int {
	switch {
	case !b.Short:
		return 5
	case callers == 1:
		return 3
	}
	return 1
}

// leaveOut records a measurement that is not possible.
func (b *bench) leaveOut(what string, reason error) {
	b.report.LeftOut = append(b.report.LeftOut, LeftOut{what, reason.Error()})
}

// build gets all forms of the guests.
func (b *bench) build(ctx context.Context) error {
	return b.step("compiling the guests", func() error {
		program, err := guests.NativeCommand(ctx, b.dir)
		if err != nil {
			b.leaveOut("native process", err)
		}
		for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go, guests.GoWarm, guests.AssemblyScript} {
			s, err := newSubject(ctx, language, b.dir, b.Compiler)
			if err != nil {
				b.leaveOut("guest "+string(language), err)
				continue
			}
			if err := s.plug(ctx, b.dir, b.Compiler); err != nil {
				b.leaveOut("extism for guest "+string(language), err)
				if s.command == nil {
					continue
				}
			}
			s.program = program
			b.subjects = append(b.subjects, s)
		}
		return nil
	})
}

func (b *bench) rows(ctx context.Context) error {
	for _, s := range b.subjects {
		if err := b.subjectRows(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) subjectRows(ctx context.Context, s *subject) (err error) {
	schemes, err := s.openAll(ctx, b.dir)
	defer func() { err = errors.Join(err, closeAll(ctx, schemes)) }()
	if err != nil {
		return err
	}
	for _, payload := range []int{smallPayload, largePayload} {
		in, err := newInput(payload)
		if err != nil {
			return err
		}
		for _, callers := range []int{1, 8, 64} {
			if b.Short && payload > smallPayload && callers > 8 {
				continue
			}
			err := b.step(fmt.Sprintf("calls of %s, %d bytes, callers: %d", s.language, payload, callers), func() error {
				rows, err := compete(ctx, schemes, in, callers, b.rounds(callers), b.Time)
				for i := range rows {
					rows[i].Guest = s.language
				}
				b.report.Rows = append(b.report.Rows, rows...)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) executors(ctx context.Context) error {
	for _, call := range []ExecutorCall{ExecutorRun, ExecutorReused, ExecutorNested} {
		for _, payload := range []int{smallPayload, largePayload} {
			in, err := newInput(payload)
			if err != nil {
				return err
			}
			measured, err := measureExecutor(ctx, in, call, b.Time)
			if err != nil {
				return err
			}
			b.report.Executor = append(b.report.Executor, measured)
		}
	}
	return nil
}

func (b *bench) meterings(ctx context.Context) error {
	for _, group := range []kernelGroup{
		{"kernels", guests.AllKernels(), guests.KernelCommand, &b.report.Metering},
		{"untuned", guests.UntunedKernels(), guests.UntunedCommand, &b.report.MeteringUntuned},
		{"recursive", guests.RecursiveKernels(), guests.RecursiveCommand, &b.report.MeteringRecursive},
	} {
		for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go} {
			what := fmt.Sprintf("metering of %s in %s", group.name, language)
			module, err := group.command(ctx, language, b.dir)
			if err != nil {
				b.leaveOut(what, err)
				continue
			}
			if err := b.step(what, func() error { return b.metering(ctx, group, language, module) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) metering(ctx context.Context, group kernelGroup, language guests.Language, module []byte) (err error) {
	runners, err := openKernels(ctx, group.name+"-"+string(language), module, b.dir, b.Compiler)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runners.close(ctx)) }()
	for _, kernel := range group.kernels {
		if b.Short {
			kernel = smaller(kernel)
		}
		measured, err := runners.measure(ctx, language, kernel, b.Time/4)
		if err != nil {
			return err
		}
		*group.into = append(*group.into, measured)
	}
	return nil
}
