package answers_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/answers"
)

// wideKey is as large as the executor's.
type wideKey struct {
	tool    [sha256.Size]byte
	tenant  string
	session *wideKey
	rest    [sha256.Size]byte
}

type wideAnswer struct {
	source string
	result [20]uint64
}

type wideQuestion = answers.Question[wideKey]

func newWide(b *testing.B, bytes int64) *answers.Cache[wideKey, wideAnswer] {
	c, err := answers.New[wideKey](bytes, func(wideAnswer) int64 { return 600 })
	require.NoError(b, err)
	return c
}

func wide(i int, domains ...string) wideQuestion {
	q := wideQuestion{Domains: domains, TTL: time.Hour}
	q.Key = wideKey{tool: [32]byte{1}, tenant: "tenant", session: nil}
	binary.LittleEndian.PutUint64(q.Key.rest[:], uint64(i))
	return q
}

func find(keep bool) func(context.Context) (wideAnswer, bool) {
	answer := wideAnswer{source: "call", result: [20]uint64{1}}
	return func(context.Context) (wideAnswer, bool) { return answer, keep }
}

var benchDomains = map[string][]string{"domains=1": {"tenant t"}, "domains=2": {"tenant t", "files"}}

func BenchmarkHit(b *testing.B) {
	c := newWide(b, 64<<20)
	var questions [1000]wideQuestion
	for i := range questions {
		questions[i] = wide(i, "tenant t", "files")
		c.Put(questions[i], c.Now(), wideAnswer{})
	}
	ask := find(true)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, from, _ := c.Do(b.Context(), questions[i%len(questions)], answers.Ready{}, ask); from != answers.Kept {
			b.Fatal(from)
		}
	}
}

func BenchmarkHitParallel(b *testing.B) {
	c := newWide(b, 64<<20)
	q := wide(0, "tenant t")
	c.Put(q, c.Now(), wideAnswer{})
	ask := find(true)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _, _ = c.Do(b.Context(), q, answers.Ready{}, ask)
		}
	})
}

// BenchmarkMiss asks, and keeps the answer in a cache that is full.
func BenchmarkMiss(b *testing.B) {
	for name, domains := range benchDomains {
		b.Run(name, func(b *testing.B) {
			c := newWide(b, 1000*600)
			ask := find(true)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, _, _ = c.Do(b.Context(), wide(i, domains...), answers.Ready{}, ask)
			}
		})
	}
}

// BenchmarkFailure asks, and keeps nothing.
func BenchmarkFailure(b *testing.B) {
	c := newWide(b, 64<<20)
	q, ask := wide(0, "tenant t"), find(false)
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = c.Do(b.Context(), q, answers.Ready{}, ask)
	}
}

// BenchmarkNested looks, and puts what was found.
func BenchmarkNested(b *testing.B) {
	c := newWide(b, 1000*600)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q := wide(i, "tenant t")
		if _, ok := c.Get(q.Key); !ok {
			c.Put(q, c.Now(), wideAnswer{})
		}
	}
}

// BenchmarkEmptyBarrier begins and ends a barrier that forgets nothing.
func BenchmarkEmptyBarrier(b *testing.B) {
	c := newWide(b, 64<<20)
	b.ReportAllocs()
	for b.Loop() {
		c.Barrier("tenant")()
	}
}
