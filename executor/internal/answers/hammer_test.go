package answers_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/testsize"
)

// world is the data of tools: a number for each domain. ended is the minimum that a caller must
// see, since the barrier that wrote it has ended.
type world [2]struct{ number, ended atomic.Int64 }

var worldDomains = [...]string{"A", "B"}

type numbers [2]int64

func (w *world) read() (n numbers) {
	for i := range w {
		n[i] = w[i].number.Load()
	}
	return n
}

func (w *world) floor() (n numbers) {
	for i := range w {
		n[i] = w[i].ended.Load()
	}
	return n
}

func (w *world) write(c *answers.Cache[string, numbers], i int) {
	end := c.Barrier(worldDomains[i])
	number := w[i].number.Add(1)
	runtime.Gosched()
	end()
	for old := w[i].ended.Load(); old < number && !w[i].ended.CompareAndSwap(old, number); old = w[i].ended.Load() {
	}
}

// TestHammer: no caller that asks after the end of a barrier gets an answer from before its
// start, and none waits forever.
func TestHammer(t *testing.T) {
	c := noerr.Get(answers.New[string](5, func(numbers) int64 { return 1 }))(t)
	places := make(chan struct{}, 3)
	var w world
	var from [4]atomic.Int64
	var group sync.WaitGroup
	for seed := range uint64(16) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2))
			for range testsize.Of(1000, 3000) {
				i, key := random.IntN(3), random.IntN(3)
				q := answers.Question[string]{Key: strconv.Itoa(i*10 + key), TTL: time.Duration(1 + random.IntN(int(time.Millisecond)))}
				if i == 2 {
					q.Domains = worldDomains[:]
				} else {
					q.Domains = worldDomains[i : i+1]
				}
				switch n := random.IntN(20); {
				case n == 0:
					w.write(c, i%2)
				default:
					q.Alone = n < 4 // as a tool that another calls
					from[hammer(t, c, &w, q, random, places)].Add(1)
				}
			}
		})
	}
	group.Wait()
	t.Logf("none %d, asked %d, kept %d, shared %d", from[0].Load(), from[1].Load(), from[2].Load(), from[3].Load())
	assert.Empty(t, places, "only callers that got a place gave one back")
}

// hammer asks in every way in which an ask can end.
func hammer(t *testing.T, c *answers.Cache[string, numbers], w *world, q answers.Question[string], random *rand.Rand, places chan struct{}) (from answers.Source) {
	ctx := t.Context()
	if random.IntN(10) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(50_000)))
		defer cancel()
	}
	end, delay := random.IntN(20), time.Duration(random.IntN(50_000))
	defer func() { _ = recover() }()
	floor := w.floor()
	var ready answers.Ready
	leave := func() {}
	if random.IntN(2) == 0 { // with one of a few places in hand
		leave = func() { <-places }
		ready = answers.Ready{Drop: leave, Get: func(ctx context.Context) error {
			select {
			case places <- struct{}{}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
	}
	n, from, err := c.Do(ctx, q, ready, func(context.Context) (numbers, bool) {
		defer leave()
		n := w.read()
		time.Sleep(delay)
		if end == 0 {
			panic("ask")
		}
		return n, end > 3
	})
	if err == nil {
		fresh(t, q, floor, n)
	}
	return from
}

func fresh(t *testing.T, q answers.Question[string], floor, n numbers) {
	for i, domain := range worldDomains {
		if len(q.Domains) == 2 || q.Domains[0] == domain {
			assert.GreaterOrEqual(t, n[i], floor[i], "an answer from before the barrier")
		}
	}
}
