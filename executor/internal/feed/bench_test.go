package feed_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/feed"
)

func BenchmarkSend(b *testing.B) {
	for _, k := range []int{0, 1, 4, 16, 64} {
		b.Run(fmt.Sprintf("subscribers=%d", k), func(b *testing.B) {
			var f feed.Feed[int]
			for range k {
				subscribe(b, &f, 64)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.Send(1)
			}
		})
	}
}

func BenchmarkSendWanted(b *testing.B) {
	var f feed.Feed[int]
	_, err := f.Subscribe(feed.Options[int]{Want: func(v int) bool { return v > 0 }})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		f.Send(1)
	}
}

func BenchmarkSendAndNext(b *testing.B) {
	var f feed.Feed[int]
	s := subscribe(b, &f, 64)
	b.ReportAllocs()
	for b.Loop() {
		f.Send(1)
		if _, _, err := s.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
