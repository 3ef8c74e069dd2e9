package feed_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/feed"
)

// model is a subscription as it is described.
type model struct {
	most   int
	want   func(int) bool
	queued []int
	lost   int64
	closed bool
}

func (m *model) send(v int) {
	if m.closed || m.want != nil && !m.want(v) {
		return
	}
	if m.queued = append(m.queued, v); len(m.queued) > m.most {
		m.queued = m.queued[1:]
		m.lost++
	}
}

func TestFeedIsLikeItsModel(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		var f feed.Feed[int]
		var real []*feed.Subscription[int]
		var models []*model
		for step := range 300 {
			switch k := random.IntN(20); {
			case k == 0 && len(real) < 20:
				m := &model{most: 1 + random.IntN(40)}
				if random.IntN(2) == 0 {
					n := 2 + random.IntN(3)
					m.want = func(v int) bool { return v%n != 0 }
				}
				s, err := f.Subscribe(feed.Options[int]{Queue: m.most, Want: m.want})
				require.NoError(t, err)
				real, models = append(real, s), append(models, m)
			case k == 1 && len(real) > 0 && random.IntN(4) == 0:
				i := random.IntN(len(real))
				real[i].Close()
				models[i].closed = true
			case k < 8 && len(real) > 0:
				i := random.IntN(len(real))
				m := models[i]
				if len(m.queued) == 0 && !m.closed {
					_, _, err := real[i].Next(stop)
					require.ErrorIs(t, err, context.Canceled)
					continue
				}
				value, lost, err := real[i].Next(t.Context())
				if len(m.queued) == 0 {
					require.ErrorIs(t, err, feed.ErrClosed)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, got{m.queued[0], m.lost}, got{value, lost}, "seed %d, step %d", seed, step)
				m.queued, m.lost = m.queued[1:], 0
			default:
				f.Send(step)
				for _, m := range models {
					m.send(step)
				}
			}
		}
		open := 0
		for _, m := range models {
			if !m.closed {
				open++
			}
		}
		require.Equal(t, open == 0, f.Idle())
		f.Close()
	}
}

// Each value is either got or counted as lost, exactly once, in the one order of all.
func TestFeedUnderLoad(t *testing.T) {
	const senders, each = 4, 5000
	var f feed.Feed[int]
	reference := subscribe(t, &f, senders*each)
	var readers, sending sync.WaitGroup
	results := make([][]got, 8)
	for i := range results {
		s := subscribe(t, &f, 1+i*i*i)
		readers.Go(func() {
			for {
				value, lost, err := s.Next(t.Context())
				if err != nil {
					assert.ErrorIs(t, err, feed.ErrClosed)
					return
				}
				results[i] = append(results[i], got{value, lost})
				if i%2 == 1 && len(results[i])%16 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	stop := make(chan struct{})
	var churning sync.WaitGroup
	churning.Go(func() { churn(t, &f, stop) })
	for sender := range senders {
		sending.Go(func() {
			for i := range each {
				f.Send(sender*each + i)
			}
		})
	}
	sending.Wait()
	close(stop)
	churning.Wait()
	f.Close()
	readers.Wait()

	order := drain(t, reference)
	require.Len(t, order, senders*each)
	last := make(map[int]int)
	for _, g := range order {
		require.Zero(t, g.lost)
		sender, i := g.value/each, g.value%each
		require.Equal(t, last[sender], i, "a sender's values keep their order")
		last[sender]++
	}
	for i, result := range results {
		at := 0
		for _, g := range result {
			at += int(g.lost)
			require.Equal(t, order[at].value, g.value, "reader %d", i)
			at++
		}
		require.Equal(t, senders*each, at, "reader %d: the newest value is never lost", i)
	}
}

// churn subscribes and closes until it is stopped.
func churn(t *testing.T, f *feed.Feed[int], stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		s, err := f.Subscribe(feed.Options[int]{Queue: 3})
		if !assert.NoError(t, err) {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, _, err = s.Next(ctx)
		assert.True(t, err == nil || errors.Is(err, context.Canceled), err)
		s.Close()
		cancel()
	}
}
