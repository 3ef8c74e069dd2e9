package executor

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func subscribe(t *testing.T, queue int) (*subscribers, *Subscription) {
	t.Helper()
	e := noerr.Get(New(registry.New(), Options{}))(t)
	s := noerr.Get(e.Subscribe(SubscribeOptions{Queue: queue}))(t)
	return &e.subscribers, s
}

func numbered(n int) *tool.Event { return &tool.Event{CallID: strconv.Itoa(n)} }

// numberOf returns the number of an event.
func numberOf(t *testing.T, event tool.Event) int64 {
	n := noerr.Get(strconv.ParseInt(event.CallID, 10, 64))(t)
	return n
}

// TestQueuesUnderLoad: each event is either read or counted as lost, once, in the same order for all, by
// any number of readers, while other subscribers come, close and give up.
func TestQueuesUnderLoad(t *testing.T) {
	const senders, each = 4, 2000
	all, first := subscribe(t, 64)
	var order sync.Mutex
	next := 0
	var sending, reading sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for range each {
				order.Lock()
				all.send(numbered(next), nil)
				next++
				order.Unlock()
			}
		})
	}
	var mu sync.Mutex
	var got, lost int64
	for range 3 {
		reading.Go(func() {
			for last := int64(-1); ; {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				event, gone, err := first.Next(ctx)
				cancel()
				if err == io.EOF {
					return
				}
				if err != nil {
					continue
				}
				n := numberOf(t, event)
				assert.Greater(t, n, last)
				last = n
				mu.Lock()
				got, lost = got+1, lost+gone
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	first.Close()
	reading.Wait()
	assert.EqualValues(t, senders*each, got+lost)
	assert.True(t, all.idle())
}

// TestReadersShareABurst: one token wakes one reader; further events of the burst must reach the other readers,
// even if one of them gives up at that moment.
func TestReadersShareABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, s := subscribe(t, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for i := range 3 {
			readers.Go(func() {
				own := t.Context()
				if i == 0 {
					own = ctx
				}
				if _, _, err := s.Next(own); err != nil {
					assert.Equal(t, 0, i)
				}
			})
		}
		synctest.Wait()
		cancel()
		for n := range 3 {
			all.send(numbered(n), nil)
		}
		readers.Wait()
		s.Close()
	})
}

// TestEventsAreFreed: events that were read or dropped can be collected, and so can a subscription that
// was closed.
func TestEventsAreFreed(t *testing.T) {
	all, s := subscribe(t, 2)
	freed := make(chan struct{}, 3)
	for range 3 {
		totals := &tool.Totals{Calls: 1}
		runtime.AddCleanup(totals, func(done chan struct{}) { done <- struct{}{} }, freed)
		all.send(&tool.Event{Totals: totals}, nil)
	}
	_, lost := noerr.Get2(s.Next(t.Context()))(t)
	require.EqualValues(t, 1, lost)
	for i := range 2 {
		require.Eventually(t, func() bool {
			runtime.GC()
			return len(freed) > i
		}, time.Minute, time.Millisecond, fmt.Sprint(i))
	}
	s.Close()
	assert.Empty(t, all.all)
	runtime.KeepAlive(s)
}
