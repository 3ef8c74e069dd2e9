package answers_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
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
	c, err := answers.New[wideKey](answers.Options[wideAnswer]{Bytes: bytes, Size: func(wideAnswer) int64 { return 600 }})
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
	c := newWide(b, 0)
	var questions [1000]wideQuestion
	for i := range questions {
		questions[i] = wide(i, "tenant t", "files")
		c.Put(questions[i], c.Began(questions[i].Domains), wideAnswer{})
	}
	ask := find(true)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, from, _ := c.Do(b.Context(), questions[i%len(questions)], ask); from != answers.Kept {
			b.Fatal(from)
		}
	}
}

func BenchmarkHitParallel(b *testing.B) {
	c := newWide(b, 0)
	q := wide(0, "tenant t")
	c.Put(q, c.Began(q.Domains), wideAnswer{})
	ask := find(true)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _, _ = c.Do(b.Context(), q, ask)
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
				_, _, _ = c.Do(b.Context(), wide(i, domains...), ask)
			}
		})
	}
}

// BenchmarkFailure asks, and keeps nothing.
func BenchmarkFailure(b *testing.B) {
	c := newWide(b, 0)
	q, ask := wide(0, "tenant t"), find(false)
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = c.Do(b.Context(), q, ask)
	}
}

// BenchmarkNested looks, and puts what was found.
func BenchmarkNested(b *testing.B) {
	c := newWide(b, 1000*600)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q := wide(i, "tenant t")
		if _, ok := c.Get(q.Key); !ok {
			c.Put(q, c.Began(q.Domains), wideAnswer{})
		}
	}
}

// BenchmarkEmptyBarrier begins and ends a barrier that forgets nothing.
func BenchmarkEmptyBarrier(b *testing.B) {
	c := newWide(b, 0)
	b.ReportAllocs()
	for b.Loop() {
		c.Barrier("tenant")()
	}
}

// BenchmarkBarrier begins and ends a barrier, beside 50,000 answers of other domains. What
// it forgets was found between these.
func BenchmarkBarrier(b *testing.B) {
	for _, count := range []int{1000, 50_000} {
		b.Run(fmt.Sprintf("forgets=%d", count), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				c := newWide(b, 0)
				for i := range 50_000 {
					for _, domain := range []string{"others", "tenant"} {
						if q := wide(i, domain); domain == "others" || i < count {
							q.Key.tenant = domain
							c.Put(q, c.Began(q.Domains), wideAnswer{})
						}
					}
				}
				b.StartTimer()
				c.Barrier("tenant")()
			}
		})
	}
}

// BenchmarkNewDomain is the first question of a tenant.
func BenchmarkNewDomain(b *testing.B) {
	c := newWide(b, 1000*600)
	ask := find(true)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, _, _ = c.Do(b.Context(), wide(i, fmt.Sprint("tenant ", i)), ask)
	}
}
