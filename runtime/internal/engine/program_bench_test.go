package engine

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// BenchmarkProgram shows what metering costs ordinary programs, which execute much code a few
// times each: one call of the tool of 100 bytes in C, Rust and Go, resumed where the tool
// reads, with the meter and without. It reports medians, in microseconds, and how many times
// as long as without the meter a call takes.
//
//	go test -bench Program -benchtime 5000x ./runtime/internal/engine
func BenchmarkProgram(b *testing.B) {
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go, guests.GoWarm} {
		source, err := guests.Command(b.Context(), language, b.TempDir())
		require.NoError(b, err)
		with, without := resumable(b, source, true), resumable(b, source, false)
		b.Run(string(language), func(b *testing.B) {
			var times [2][]time.Duration
			for b.Loop() {
				for n, p := range []*Program{with, without} { // taking turns: noise meets both
					times[n] = append(times[n], resumeTool(b, p))
				}
			}
			metered, plain := median(times[0]), median(times[1])
			b.ReportMetric(metered, "metered-µs")
			b.ReportMetric(plain, "plain-µs")
			b.ReportMetric(metered/plain, "metered/plain")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// resumable starts a tool, in an engine of its own.
func resumable(b *testing.B, source []byte, metered bool) *Program {
	e := newEngine(b, Options{Functions: wasi.Functions()}, nil)
	description, err := wasm.Inspect(source)
	require.NoError(b, err)
	if !metered {
		source = withIdleMeter(source, description)
		description, err = wasm.Inspect(source)
		require.NoError(b, err)
	}
	analysis, err := wasm.Validate(source, description)
	require.NoError(b, err)
	passes, err := wasm.Rewrite(source, analysis, wasm.Passes{Meter: metered, Depth: true, Globals: true, Fork: true})
	require.NoError(b, err)
	require.True(b, passes.Forks)
	r := rewritten{source: passes.Source, meter: passes.MeterGlobal, depth: passes.DepthGlobal, shift: passes.FunctionShift, forks: true}
	if !metered {
		r.meter = idleMeter
	}
	for _, global := range passes.Globals {
		r.globals = append(r.globals, global.Name)
	}
	code, err := e.runtime.CompileModule(b.Context(), r.source)
	require.NoError(b, err)
	module := &Module{engine: e, digest: DigestOf(source), description: description, rewritten: r, compiled: code}
	e.modules[module.digest] = &compilation{module: module} // for Close
	e.settle(module)
	program, err := module.Start(b.Context(), Start{MemoryLimit: 256 * mebibyte, Timeout: time.Minute, Fuel: 1 << 40,
		Context: func(ctx context.Context) context.Context {
			system := worldOfTool()
			system.Starting = &wasi.Starting{}
			return wasi.With(ctx, system)
		}})
	require.NoError(b, err)
	return program
}

// idleMeter is a global that takes the place of the meter's in a module without one.
const idleMeter = "idle"

// withIdleMeter adds it to a module.
func withIdleMeter(source []byte, description *wasm.Module) []byte {
	export := join(name(idleMeter), []byte{3}, leb(len(description.Globals)))
	module := source[:8:8]
	for _, s := range description.Sections {
		content := source[s.Content:s.End]
		switch s.ID {
		case wasm.SectionGlobal:
			content = extended(content, [][]byte{{0x7e, 1, 0x42, 0, 0x0b}})
		case wasm.SectionExport:
			content = extended(content, [][]byte{export})
		}
		module = append(module, section(byte(s.ID), content...)...)
	}
	return module
}

// worldOfTool is the same each time: its clock counts how often it was read.
func worldOfTool() *wasi.System {
	began, reads := time.Unix(1_700_000_000, 0), 0
	return &wasi.System{Args: []string{"tool"}, Random: rand.NewChaCha8([32]byte{}), Started: began,
		Now: func() time.Time {
			reads++
			return began.Add(time.Duration(reads) * time.Microsecond)
		}}
}

// resumeTool makes a call, and returns what it took.
func resumeTool(b *testing.B, p *Program) time.Duration {
	call := guests.NewCall(100)
	system := worldOfTool()
	system.Stdin, system.Stdout = call.Input, &wasi.Output{Limit: 1 << 20}
	ctx := wasi.With(b.Context(), system)
	start := time.Now()
	_, err := p.Run(ctx, Run{})
	took := time.Since(start)
	if exit := (*wasi.ExitError)(nil); err != nil {
		require.ErrorAs(b, err, &exit)
		require.Zero(b, exit.Code)
	}
	require.NoError(b, call.Check(system.Stdout.Bytes))
	return took
}

// median returns the median in microseconds.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return math.Round(float64(times[len(times)/2].Nanoseconds())/10) / 100
}
