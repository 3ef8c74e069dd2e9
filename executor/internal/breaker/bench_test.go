package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type pair struct{ tenant, tool string }

// BenchmarkClosed measures a call that succeeds, from being allowed to its report.
func BenchmarkClosed(b *testing.B) {
	tests := []struct {
		name    string
		failing int // other keys
		own     bool
	}{{"no failures", 0, false}, {"failures of another key", 1, false}, {"failures of many keys", 10_000, false}, {"after failures", 0, true}}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			breakers, err := New[pair](Options{})
			require.NoError(b, err)
			key := pair{"tenant", "calculator"}
			for i := range test.failing {
				attempt, err := breakers.Allow(pair{"other", string(rune(i))})
				require.NoError(b, err)
				attempt.Report(Failed)
			}
			if test.own { // a key that has recovered stays known for a while
				c := breakers.add(key, time.Now())
				c.opening = breakers.openings.Add(1)
			}
			b.ReportAllocs()
			for b.Loop() {
				attempt, err := breakers.Allow(key)
				if err != nil {
					b.Fatal(err)
				}
				attempt.Report(Succeeded)
			}
		})
	}
}

// BenchmarkClosedParallel is BenchmarkClosed from many goroutines, with failures of another key.
func BenchmarkClosedParallel(b *testing.B) {
	breakers, err := New[pair](Options{})
	require.NoError(b, err)
	attempt, err := breakers.Allow(pair{"other", "tool"})
	require.NoError(b, err)
	attempt.Report(Failed)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			attempt, err := breakers.Allow(pair{"tenant", "calculator"})
			if err != nil {
				b.Error(err)
				return
			}
			attempt.Report(Succeeded)
		}
	})
}

// BenchmarkOpen measures a call that is refused.
func BenchmarkOpen(b *testing.B) {
	breakers, err := New[pair](Options{Failures: 1})
	require.NoError(b, err)
	attempt, err := breakers.Allow(pair{})
	require.NoError(b, err)
	require.Equal(b, Opened, attempt.Report(Failed))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := breakers.Allow(pair{}); err == nil {
			b.Fatal("the circuit is closed")
		}
	}
}
