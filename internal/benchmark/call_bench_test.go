package benchmark

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime"
)

// BenchmarkCall is one call of each guest's tool, from a caller that is alone and from 64
// callers at the same time.
func BenchmarkCall(b *testing.B) {
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go, guests.GoWarm} {
		dir := b.TempDir()
		s, err := newSubject(b.Context(), language, dir, runtime.Compiler{})
		require.NoError(b, err)
		in, err := newInput(100)
		require.NoError(b, err)
		session, err := s.ours.open(b.Context(), dir+"/cache")
		require.NoError(b, err)
		defer func() { require.NoError(b, session.close(b.Context())) }()
		one, err := session.caller(b.Context())
		require.NoError(b, err)
		call := func(b *testing.B) {
			if _, err := one.call(b.Context(), in); err != nil {
				b.Error(err)
			}
		}
		for range 5 {
			call(b)
		}
		b.Run(fmt.Sprintf("%s/alone", language), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b)
			}
		})
		b.Run(fmt.Sprintf("%s/callers=64", language), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					call(b)
				}
			})
		})
	}
}
