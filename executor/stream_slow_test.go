package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// chatty is a tool that says much at once: 1,000 times as many bytes as its argument says.
func chatty(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
	raw, _ := i.Arguments.Get("bytes")
	var size int
	if err := json.Unmarshal(raw, &size); err != nil {
		return tool.Outcome{}, err
	}
	for range 1000 {
		if err := i.Host.Emit(tool.Emission{Type: tool.EmitText, Text: strings.Repeat("x", size)}); err != nil {
			return tool.Outcome{}, err
		}
	}
	return succeed("done"), nil
}

// TestStreamMemory: if a tool emits much more than is read, a stream holds no more than
// its bound. Without the bound it holds everything.
func TestStreamMemory(t *testing.T) {
	const size, said = 64 << 10, 1000 * (64 << 10)
	held := func(options executor.StreamOptions) int64 {
		e := newExecutor(t, executor.Options{}, newFake(t, "chatty", readOnly, chatty))
		before := heapInUse()
		stream := newStream(t, options)
		_ = reportOf(t, e, executor.Batch{Stream: stream, Calls: []tool.Call{newCall("1", "chatty", fmt.Sprintf(`{"bytes":%d}`, size))}})
		held := heapInUse() - before
		var lost, heard int
		for _, event := range drainStream(t, stream) {
			lost += event.Lost
			if event.Emission != nil {
				heard++
			}
		}
		assert.Equal(t, 1000, lost+heard)
		return held
	}
	assert.Less(t, held(executor.StreamOptions{}), int64(said/8))
	assert.Greater(t, held(executor.StreamOptions{Bytes: math.MaxInt64}), int64(said*9/10), "the control")
}

// heapInUse returns how many bytes are reachable.
func heapInUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestStreamIsShared: a call that says very much does not take what another needs, whichever of
// them comes first.
func TestStreamIsShared(t *testing.T) {
	for _, order := range [][]string{{"chatty", "modest"}, {"modest", "chatty"}} {
		t.Run(order[0], func(t *testing.T) {
			turn := make(chan struct{})
			after := func(do run) run {
				return func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
					if i.Tool != order[0] {
						<-turn
					} else {
						defer close(turn)
					}
					return do(ctx, i)
				}
			}
			modest := func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
				for n := range 10 {
					if err := i.Host.Emit(tool.Emission{Type: tool.EmitText, Text: fmt.Sprint(n)}); err != nil {
						return tool.Outcome{}, err
					}
				}
				return succeed("done"), nil
			}
			e := newExecutor(t, executor.Options{}, newFake(t, "chatty", readOnly, after(chatty)), newFake(t, "modest", readOnly, after(modest)))
			stream := newStream(t, executor.StreamOptions{Bytes: 20 << 8})
			_ = reportOf(t, e, executor.Batch{Stream: stream, Parallel: 2, Calls: []tool.Call{newCall("1", "chatty", `{"bytes":100}`), newCall("2", "modest", "{}")}})
			heard, lost := map[string]int{}, map[string]int{}
			for _, event := range drainStream(t, stream) {
				lost[event.Tool] += event.Lost
				if event.Emission != nil {
					heard[event.Tool]++
				}
			}
			assert.Equal(t, 10, heard["modest"])
			assert.Zero(t, lost["modest"])
			assert.Equal(t, 10, heard["chatty"])
			assert.Equal(t, 990, lost["chatty"])
		})
	}
}

// TestSlowReaderBlocksNobody: while one reader sleeps for a day, its batch and other batches end,
// each as soon as without it.
func TestSlowReaderBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, takingASecond(t)...)
		run := func(stream *executor.Stream) {
			began := time.Now()
			assert.NoError(t, noerr.Error(e.Execute(t.Context(), executor.Batch{Stream: stream, Calls: []tool.Call{newCall("1", "work", "{}"), newCall("2", "work", `{"n":2}`)}})))
			assert.Equal(t, time.Second, time.Since(began))
		}
		var group sync.WaitGroup
		slow, absent := newStream(t, executor.StreamOptions{}), newStream(t, executor.StreamOptions{})
		for _, stream := range []*executor.Stream{slow, absent, nil, newStream(t, executor.StreamOptions{})} {
			group.Go(func() { run(stream) })
		}
		noerr.Get(slow.Next(t.Context()))(t)
		time.Sleep(24 * time.Hour)
		group.Wait()
		assert.NotEmpty(t, drainStream(t, slow))
	})
}

// takingASecond returns a tool that says a word, works for a second, and says another.
func takingASecond(t testing.TB) []registry.Tool {
	return []registry.Tool{newFake(t, "work", behaves(fields{"read_only": true, "cache": "off"}), func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		for n := range 2 {
			if err := i.Host.Emit(tool.Emission{Type: tool.EmitText, Text: fmt.Sprint(n)}); err != nil {
				return tool.Outcome{}, err
			}
			if n == 0 {
				time.Sleep(time.Second)
			}
		}
		return succeed("done"), nil
	})}
}

// TestStreamIsLive: emissions can be read while the call runs.
func TestStreamIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, takingASecond(t)...)
		stream := newStream(t, executor.StreamOptions{})
		began := time.Now()
		var group sync.WaitGroup
		group.Go(func() {
			assert.NoError(t, noerr.Error(e.Execute(t.Context(), executor.Batch{Stream: stream, Calls: []tool.Call{newCall("1", "work", "{}")}})))
		})
		var after []time.Duration
		for event, err := range stream.Events(t.Context()) {
			require.NoError(t, err)
			if event.Type == tool.CallOutput {
				after = append(after, time.Since(began))
			}
		}
		group.Wait()
		assert.Equal(t, []time.Duration{0, time.Second}, after)
	})
}

// TestStreamOfManyCalls: a batch may have very many calls, and a reader come late.
func TestStreamOfManyCalls(t *testing.T) {
	const many = 10_000
	e := newExecutor(t, executor.Options{Rates: unlimited}, newTalkWorld().tools(t)...)
	calls := make([]tool.Call, many)
	for i := range calls {
		calls[i] = newCall(fmt.Sprint(i), "live", fmt.Sprintf(`{"script":"tp","n":%d}`, i))
	}
	stream := newStream(t, executor.StreamOptions{Bytes: 2 * many << 8})
	_ = reportOf(t, e, executor.Batch{Stream: stream, Calls: calls})
	events := drainStream(t, stream)
	assert.Len(t, events, 2+4*many)
}
