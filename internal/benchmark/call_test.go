package benchmark

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/runtime"
)

// BenchmarkCall is a call of the tool with 100 bytes of JSON by a single caller, in C and Rust, as an
// Extism plug-in and as a WASI command. Besides the mean, it reports the median and the lowest
// tenth, which differ less between runs.
func BenchmarkCall(b *testing.B) {
	in, err := newInput(smallPayload)
	require.NoError(b, err)
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		for abi, module := range map[modules.ABI]func(context.Context, guests.Language, string) ([]byte, error){
			modules.ABIExtism: guests.Plugin, modules.ABIWASI: guests.Command,
		} {
			b.Run(string(language)+"/"+string(abi), func(b *testing.B) {
				source, err := module(b.Context(), language, "")
				require.NoError(b, err)
				dir := b.TempDir()
				written, err := newCaissonTool(filepath.Join(dir, "tool"), manifestOf(language, abi), source, runtime.Compiler{})
				require.NoError(b, err)
				loaded, err := written.start(b.Context(), filepath.Join(dir, "cache"))
				require.NoError(b, err)
				defer func() { require.NoError(b, loaded.close(context.WithoutCancel(b.Context()))) }()
				if abi == modules.ABIWASI {
					require.NoError(b, warm(b.Context(), []*caissonSession{loaded}, in))
				}
				measureCalls(b, loaded, in)
			})
		}
	}
}

// measureCalls calls a tool, and reports percentiles of the time that a call takes.
func measureCalls(b *testing.B, loaded *caissonSession, in input) {
	check := checker{expected: in.expected}
	took := make([]time.Duration, 0, 1<<20)
	for b.Loop() {
		began := time.Now()
		output, err := loaded.invoke(b.Context(), in.arguments)
		took = append(took, time.Since(began))
		if err == nil {
			err = check.check([]byte(output), 1)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(microseconds(percentile(took, 10)), "p10-µs")
	b.ReportMetric(microseconds(percentile(took, 50)), "p50-µs")
}
