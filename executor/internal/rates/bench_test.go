package rates

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type pair struct{ tenant, tool string }

// BenchmarkTake measures a call that need not wait, of one of so many keys.
func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			l := New[pair](1<<30, 100*365*24*time.Hour) // so slow that no bucket is full again
			var all []pair
			for i := range keys {
				all = append(all, pair{"tenant-" + strconv.Itoa(i), "calculator"})
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := l.Take(ctx, all[i%keys], 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTakeNewKey measures a call of a key that never came.
func BenchmarkTakeNewKey(b *testing.B) {
	l := New[int](1000, time.Second)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := l.Take(b.Context(), i, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTakeParallel is BenchmarkTake from many goroutines.
func BenchmarkTakeParallel(b *testing.B) {
	l := New[pair](1<<40, time.Second)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.Take(b.Context(), pair{"tenant", "calculator"}, 0); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkExceeded measures a call that is refused.
func BenchmarkExceeded(b *testing.B) {
	l := New[pair](1, time.Hour)
	require.NoError(b, l.Take(b.Context(), pair{}, 0))
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Take(b.Context(), pair{}, 0); err == nil {
			b.Fatal("the call was taken")
		}
	}
}
