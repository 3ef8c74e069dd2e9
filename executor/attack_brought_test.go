package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// bring returns tools of a caller with a schema.
func bring(count int, schema string) []tool.Definition {
	tools := make([]tool.Definition, count)
	for i := range tools {
		tools[i] = tool.Definition{Name: fmt.Sprintf("t%d", i), Parameters: json.RawMessage(schema)}
	}
	return tools
}

// propertiesOf returns a schema with equal properties.
func propertiesOf(count int, property string) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `,"p%d":%s`, i, property)
	}
	return `{"type":"object","properties":{` + b.String()[1:] + `}}`
}

// TestAttackPatternsOfBroughtTools: the patterns of all tools that a batch brings are bounded together: 120 KB of
// schemas took three seconds and 235 MB. The control is tools with ordinary patterns.
func TestAttackPatternsOfBroughtTools(t *testing.T) {
	e := newExecutor(t, executor.Options{})
	const ordinary = `{"type":"object","properties":{"email":{"type":"string","pattern":"^[^@ ]+@[^@ ]+$"},"day":{"type":"string","pattern":"^\\d{4}-\\d{2}-\\d{2}$"},"name":{"type":"string","pattern":"^[\\p{L} ]+$"}}}`
	reportOf(t, e, executor.Batch{Client: bring(128, ordinary)})
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	_, err := e.Execute(t.Context(), executor.Batch{Client: bring(120, propertiesOf(30, `{"pattern":"\\pL{999}"}`))})
	goruntime.ReadMemStats(&after)
	require.ErrorIs(t, err, executor.ErrInvalidBatch)
	assert.ErrorContains(t, err, "the patterns of the tools in Client are too large together")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64*mebibyte))
}

// TestAttackKeptSchemas: a running batch does not keep the schemas that it compiled to plan its calls, which are megabytes.
func TestAttackKeptSchemas(t *testing.T) {
	const batches = 4
	running := make(chan struct{})
	e := newExecutor(t, executor.Options{}, newFake(t, "slow", nil, func(ctx context.Context, _ tool.Invocation) (tool.Outcome, error) {
		running <- struct{}{}
		<-ctx.Done()
		return tool.Outcome{}, ctx.Err()
	}))
	tools := bring(4, propertiesOf(1900, `{}`)) // of 6 MB, compiled
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	before := held()
	for range batches {
		ended.Go(func() {
			_, err := e.Execute(ctx, executor.Batch{Client: tools, Calls: []tool.Call{newCall("1", "slow", `{}`), newCall("2", "t0", `{}`)}})
			assert.NoError(t, err)
		})
	}
	for range batches {
		<-running
	}
	kept := held() - before
	stop()
	ended.Wait()
	assert.Less(t, kept, int64(batches*mebibyte))
}

// doublingUnion is a schema that takes all the work of a check, unless it is shallow.
func doublingUnion(levels int, more string) string {
	var b strings.Builder
	for i := range levels {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"type":"object","$defs":{%s"d%d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d0"%s}}}`, b.String(), levels, more)
}

// TestAttackChecksByBroughtSchemas: all calls of a batch share the work of checking them by the schemas that the caller
// brings, which took a second for each of a thousand calls. The controls are schemas that take little.
func TestAttackChecksByBroughtSchemas(t *testing.T) {
	const count = 8
	for name, c := range map[string]struct{ more, arguments string }{
		"arguments": {"", `{"a":5}`},
		"defaults":  {`,"default":5`, `{}`},
	} {
		for levels, shared := range map[int]bool{30: true, 3: false} {
			t.Run(fmt.Sprint(name, levels), func(t *testing.T) {
				e := newExecutor(t, executor.Options{})
				batch := executor.Batch{Client: bring(count, doublingUnion(levels, c.more))}
				for i := range count {
					batch.Calls = append(batch.Calls, newCall(fmt.Sprint(i), fmt.Sprintf("t%d", i), c.arguments))
				}
				refused := 0
				for _, record := range reportOf(t, e, batch).Records {
					if strings.Contains(record.Result.Error, "make fewer at a time") {
						assert.Equal(t, tool.InvalidArguments, record.Result.Kind)
						refused++
					}
				}
				if shared {
					assert.GreaterOrEqual(t, refused, count-2)
				} else {
					assert.Zero(t, refused)
				}
			})
		}
	}
}

// TestAttackTurnsOfBroughtTools: however many batches of a tenant bring tools, those of another wait for few of them.
// Each batch takes seconds to plan: lookup takes a second to find its tool. The control is its own.
func TestAttackTurnsOfBroughtTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batches = 40
		processors := goruntime.GOMAXPROCS(0)
		tools := &lookup{Registry: newRegistry(t)}
		e := executorOf(t, tools, executor.Options{})
		run := func(tenant, name string, timeout time.Duration) (tool.Kind, time.Duration) {
			began := time.Now()
			report, err := e.Execute(t.Context(), executor.Batch{
				Session: newSession(t, e, executor.SessionOptions{Tenant: tenant}), Timeout: timeout,
				Client: []tool.Definition{{Name: name}}, Calls: []tool.Call{newCall("1", name, `{}`)},
			})
			if assert.NoError(t, err) && len(report.Records) > 0 {
				return report.Records[0].Result.Kind, time.Since(began)
			}
			return "", time.Since(began)
		}
		var last time.Duration
		var mu sync.Mutex
		var ended sync.WaitGroup
		for range batches {
			ended.Go(func() {
				_, took := run("a", "leaf", 0)
				mu.Lock()
				last = max(last, took)
				mu.Unlock()
			})
		}
		time.Sleep(time.Second / 2)
		_, waited := run("b", "mine", 0)
		assert.LessOrEqual(t, waited, 4*time.Second)
		kind, waited := run("a", "mine", time.Second)
		assert.Equal(t, tool.Deadline, kind)
		assert.Equal(t, time.Second, waited, "the wait counts")
		ended.Wait()
		assert.LessOrEqual(t, tools.most, max(1, processors/2))
		assert.GreaterOrEqual(t, last, batches/time.Duration(processors)*time.Second, "control")
	})
}

// TestAttackClaimsOfResumedBatches: batches that pause and resume in one process leave nothing in it. The control is
// states that were written, of which there may be copies.
func TestAttackClaimsOfResumedBatches(t *testing.T) {
	const batches = 20
	e := newExecutor(t, executor.Options{}, newClient(t, "c", nil))
	session := newSession(t, e, executor.SessionOptions{})
	for range batches {
		_ = resume(t, e, answered(session, *paused(t, e, session, newCall("1", "c", "{}")).State))
	}
	assert.Zero(t, e.Claims())
	for range batches {
		_ = resume(t, e, answered(session, stored(t, paused(t, e, session, newCall("1", "c", "{}")).State)))
	}
	assert.Equal(t, batches, e.Claims())
}

// TestAttackStateIsWritten: whenever a state is written, it is resumed once, be it from memory or from JSON.
func TestAttackStateIsWritten(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newClient(t, "c", nil))
	session := newSession(t, e, executor.SessionOptions{})
	tries := map[string]func(state *executor.State) (first, second executor.State){
		"never":                  func(s *executor.State) (executor.State, executor.State) { return *s, *s },
		"before":                 func(s *executor.State) (executor.State, executor.State) { return stored(t, s), *s },
		"before, and not used":   func(s *executor.State) (executor.State, executor.State) { return *s, stored(t, s) },
		"before, and used twice": func(s *executor.State) (executor.State, executor.State) { return stored(t, s), stored(t, s) },
	}
	for name, states := range tries {
		t.Run(name, func(t *testing.T) {
			first, second := states(paused(t, e, session, newCall("1", "c", "{}")).State)
			_ = resume(t, e, answered(session, first))
			_, err := e.Resume(t.Context(), answered(session, second))
			require.ErrorIs(t, err, executor.ErrAlreadyResumed)
		})
	}
	t.Run("after", func(t *testing.T) {
		state := paused(t, e, session, newCall("1", "c", "{}")).State
		_ = resume(t, e, answered(session, *state))
		_, err := e.Resume(t.Context(), answered(session, stored(t, state)))
		require.ErrorIs(t, err, executor.ErrAlreadyResumed)
	})
}
