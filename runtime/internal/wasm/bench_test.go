package wasm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The benchmarks run on a program of Go's distribution, of some 5 MB.

func BenchmarkInspect(b *testing.B) {
	source := goProgram(b)
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := Inspect(source)
		require.NoError(b, err)
	}
}

func BenchmarkValidate(b *testing.B) {
	source := goProgram(b)
	m, err := Inspect(source)
	require.NoError(b, err)
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := Validate(source, m)
		require.NoError(b, err)
	}
}

func BenchmarkRewrite(b *testing.B) {
	source := goProgram(b)
	a, err := check(source, Bounds{}, Features{})
	require.NoError(b, err)
	for _, passes := range []Passes{{Meter: true}, {Depth: true}, {Meter: true, Depth: true}} {
		b.Run(fmt.Sprintf("meter=%t,depth=%t", passes.Meter, passes.Depth), func(b *testing.B) {
			b.SetBytes(int64(len(source)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := Rewrite(source, a, passes)
				require.NoError(b, err)
			}
		})
	}
}
