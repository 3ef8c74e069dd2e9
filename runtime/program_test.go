package runtime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

// command is the JSON tool of a language, as a WASI command.
func command(t testing.TB, language guests.Language) []byte {
	t.Helper()
	source, err := guests.Command(t.Context(), language, t.TempDir())
	require.NoError(t, err)
	return source
}

// jsonTool loads the JSON tool of a language, with lines added to its manifest.
func jsonTool(t testing.TB, r *Runtime, language guests.Language, lines string) *Tool {
	t.Helper()
	return load(t, r, named(t, string(language), string(command(t, language)), "parameters: {type: object}\n"+lines), manifests.Grants{})
}

// answered makes one call, and checks the answer: it counts the calls that the program's memory
// knows of, which must be one.
func answered(ctx context.Context, loaded *Tool, call guests.Call) error {
	arguments, err := tool.ParseArguments(string(call.Input))
	if err != nil {
		return err
	}
	outcome, err := loaded.Invoke(ctx, tool.Invocation{Arguments: arguments})
	if err != nil {
		return err
	}
	return call.Check([]byte(outcome.Result.Output))
}

// settled waits for the start of a program that was called twice.
func (p *program) settled(t *testing.T) (started *engine.Program, reason string) {
	t.Helper()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		started, reason = p.started, p.reason
		return started != nil || reason != ""
	}, time.Minute, time.Millisecond)
	return started, reason
}

func TestProgramsAreStartedOnce(t *testing.T) {
	for _, test := range []struct {
		language guests.Language
		behavior string
		reason   string // why it is not
	}{
		{guests.C, "", ""},
		{guests.C, "behavior: {snapshot: off}", "the manifest says snapshot: off"},
		{guests.Rust, "", ""},
		{guests.Go, "", "it asks for random bytes as it starts"},
		{guests.Go, "behavior: {snapshot: start}", ""},
		{guests.GoWarm, "behavior: {snapshot: start}", ""},
	} {
		t.Run(fmt.Sprintf("%s %s", test.language, test.behavior), func(t *testing.T) {
			r := newRuntime(t, Options{})
			loaded := jsonTool(t, r, test.language, test.behavior)
			first, second := guests.NewCall(100), guests.NewCall(5000)
			require.NoError(t, answered(t.Context(), loaded, first))
			require.NoError(t, answered(t.Context(), loaded, second))
			started, reason := loaded.program.settled(t)
			for range 3 {
				require.NoError(t, answered(t.Context(), loaded, first))
				require.NoError(t, answered(t.Context(), loaded, second))
			}
			assert.Contains(t, reason, test.reason)
			assert.Equal(t, test.reason == "", started != nil, reason)
			var group sync.WaitGroup
			for n := range 16 {
				group.Go(func() {
					for i := range testsize.Of(7, 20) {
						call := guests.NewCall(50 + 100*n + i)
						if n%4 == 0 && i%5 == 0 { // some are stopped somewhere
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
							_ = answered(ctx, loaded, call)
							cancel()
						}
						assert.NoError(t, answered(t.Context(), loaded, call))
					}
				})
			}
			group.Wait()
		})
	}
}

// TestManyToolsInLittleMemory: 64 callers of more tools than memory has room for get the right answers, whatever is
// evicted meanwhile.
func TestManyToolsInLittleMemory(t *testing.T) {
	tools := testsize.Of(10, 24)
	r := newRuntime(t, Options{Running: 64, CacheDir: filepath.Join(t.TempDir(), "cache"), Memory: Memory{Instances: 1 << 20, Modules: 1 << 20}})
	source := command(t, guests.C)
	var loaded []*Tool
	for n := range tools {
		variant := string(source) + string([]byte{0, 2, 1, byte('a' + n)}) // a custom section
		m := named(t, fmt.Sprint("tool", n), variant, "parameters: {type: object}\nlimits: {memory: 1MiB}\n")
		loaded = append(loaded, load(t, r, m, manifests.Grants{}))
	}
	var group sync.WaitGroup
	for caller := range uint64(64) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(caller, 0))
			for range testsize.Of(8, 20) {
				assert.NoError(t, answered(t.Context(), loaded[random.IntN(tools)], guests.NewCall(20+random.IntN(200))))
			}
		})
	}
	group.Wait()
	evicted := 0
	for _, tool := range loaded {
		if tool.module.Evicted() {
			evicted++
		}
	}
	assert.Positive(t, evicted, "control: there is not memory for all")
}

// TestCallsWithoutTheirEvictedProgram: a tool whose started program was evicted starts it in the next call, and for all
// calls after the one that follows. The control is a program that stays.
func TestCallsWithoutTheirEvictedProgram(t *testing.T) {
	for bytes, evicted := range map[manifests.Bytes]bool{1: true, 1 << 30: false} {
		r := newRuntime(t, Options{Memory: Memory{Modules: bytes}})
		c := jsonTool(t, r, guests.C, "")
		started := func(not *engine.Program) (program *engine.Program) {
			require.Eventually(t, func() bool {
				c.program.mu.Lock()
				defer c.program.mu.Unlock()
				program = c.program.started
				return program != nil && program != not
			}, 20*time.Second, time.Millisecond)
			return program
		}
		call := guests.NewCall(100)
		for range 2 {
			require.NoError(t, answered(t.Context(), c, call))
		}
		first := started(nil)
		assert.Equal(t, evicted, first.Evicted())
		for range 2 {
			require.NoError(t, answered(t.Context(), c, call))
		}
		if evicted {
			started(first)
		} else {
			assert.Same(t, first, started(nil), "control")
		}
		assert.False(t, c.module.Evicted())
	}
}

// TestClosedToolsLeaveNoProgram: neither one that was started, nor one that is being started. The control is another
// tool of the same module.
func TestClosedToolsLeaveNoProgram(t *testing.T) {
	r := newRuntime(t, Options{})
	first, second := jsonTool(t, r, guests.C, ""), jsonTool(t, r, guests.C, "")
	call := guests.NewCall(100)
	for _, c := range []*Tool{first, second} {
		for range 2 {
			require.NoError(t, answered(t.Context(), c, call))
		}
		require.Eventually(t, func() bool {
			c.program.mu.Lock()
			defer c.program.mu.Unlock()
			return c.program.started != nil
		}, 20*time.Second, time.Millisecond)
	}
	closed, kept := first.program.started, second.program.started
	require.NoError(t, first.Close(t.Context()))
	assert.True(t, closed.Evicted())
	assert.False(t, kept.Evicted(), "control")
	require.NoError(t, answered(t.Context(), second, call))
	assert.False(t, first.program.decide(first.module, closed, nil, nil), "a start that ends later")
}

// TestAttackCallsThatWaitForAModule: a call whose deadline is over does not wait until the file of its module has been
// read, which happens once for all calls that need it. The controls wait.
func TestAttackCallsThatWaitForAModule(t *testing.T) {
	c := jsonTool(t, newRuntime(t, Options{}), guests.C, "")
	goOn, begun := make(chan struct{}), make(chan struct{})
	go c.compiling.do(t.Context(), t.Context(), "compile", func(context.Context) (*engine.Module, error) {
		begun <- struct{}{}
		<-goOn
		return nil, ErrModule
	})
	go c.hashing.do(t.Context(), t.Context(), "digest", func(context.Context) (engine.Digest, error) {
		begun <- struct{}{}
		<-goOn
		return engine.Digest{}, ErrModule
	})
	<-begun
	<-begun
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, c.Prepare(ended), context.Canceled)
	_, err := c.Identity(ended)
	require.ErrorIs(t, err, context.Canceled)

	waiting := make(chan error, 1)
	go func() { waiting <- c.Prepare(t.Context()) }()
	select {
	case err := <-waiting:
		require.Fail(t, "the control does not wait", "%v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(goOn)
	require.ErrorIs(t, <-waiting, ErrModule)
	require.NoError(t, c.Prepare(t.Context()))

	_, err = c.hashing.do(t.Context(), t.Context(), "panic", func(context.Context) (engine.Digest, error) { panic("a bug") })
	var caught *engine.PanicError
	require.ErrorAs(t, err, &caught, "which ends no other call")
}

// TestChangedModuleIsNotRunAfterEviction: a tool keeps the module with which it was first used.
func TestChangedModuleIsNotRunAfterEviction(t *testing.T) {
	r := newRuntime(t, Options{Memory: Memory{Modules: 1}})
	first, second := jsonTool(t, r, guests.C, ""), jsonTool(t, r, guests.Rust, "")
	call := guests.NewCall(100)
	require.NoError(t, answered(t.Context(), first, call))
	require.NoError(t, answered(t.Context(), second, call))
	assert.True(t, first.module.Evicted())
	require.NoError(t, first.Prepare(t.Context()))
	assert.False(t, first.module.Evicted(), "it is compiled again, before the time of a call begins")
	require.NoError(t, answered(t.Context(), first, call))
	require.NoError(t, answered(t.Context(), second, call))
	require.Eventually(t, first.module.Evicted, 5*time.Second, time.Millisecond, "once its instance is back in its pool")
	file := filepath.Join(filepath.Dir(first.Manifest().File), "guest.wasm")
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(source, 0, 2, 1, 'x'), 0o600))
	assert.ErrorIs(t, answered(t.Context(), first, call), ErrDigest)
	require.NoError(t, os.WriteFile(file, source, 0o600))
	assert.NoError(t, answered(t.Context(), first, call))
}
