//go:build !race

package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// The promises that each attack is held to.
const (
	promisedOver   = 100 * time.Millisecond // after the deadline, in the best of the attempts
	toleratedOver  = 5 * time.Second        // in each attempt, on a machine that is busy
	promisedMemory = 300 << 20              // bytes of the host's, over the baseline
	attempts       = 5
)

// attack is a guest that takes what it can get.
type attack struct {
	name    string
	guest   guest
	limits  string        // of its manifest, beside the timeout
	timeout time.Duration // 0 means 300 ms
	callers int           // at once; 0 means 1
	late    time.Duration // how late an answer may be beyond what is promised
	end     tool.Kind
	// granted is what the limits let the guest have beyond what is promised, in bytes.
	granted int64
	// check looks at the outcome, where its end does not say it all.
	check func(tool.Outcome) error
	// control shows that the attack works in wazero alone.
	control control
}

// deadline returns the timeout of each call.
func (a attack) deadline() time.Duration {
	if a.timeout == 0 {
		return 300 * time.Millisecond
	}
	return a.timeout
}

func TestAttack(t *testing.T) { contain(t, testsize.Sample(attacks(), 6)) }

// contain holds attacks to the promises, each in a subtest.
func contain(t *testing.T, attacks []attack) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			if performing() {
				a.perform(t).send(t)
				return
			}
			e := perform(t.Context(), t.TempDir(), t.Name(), time.Minute)
			require.NoError(t, e.failure)
			require.True(t, e.reported, "the host did not survive: %s", e.output)
			best, ends := slices.Min(e.Over), slices.Compact(slices.Sorted(slices.Values(e.Ends)))
			t.Logf("%s after the deadline; %d MiB over a baseline of %d MiB; ends %q; %s",
				best.Round(time.Millisecond), e.grown()>>20, e.Baseline>>20, ends, e.Problem)
			assert.LessOrEqual(t, best, promisedOver+a.late)
			assert.LessOrEqual(t, slices.Max(e.Over), toleratedOver)
			assert.LessOrEqual(t, e.grown(), promisedMemory+a.granted)
			assert.Equal(t, []string{string(a.end)}, ends, e.Problem)
			assert.Empty(t, e.Survivor, "an innocent call on the same runtime")
		})
	}
}

// perform attacks until the answer comes in time, and measures.
func (a attack) perform(t *testing.T) report {
	r := newRuntime(t, runtime.Options{Limits: runtime.Limits{Memory: mostMemory}})
	hostile := load(t, r, a.guest.bytes(), fmt.Sprintf("limits: {timeout: %s%s}", a.deadline(), a.limits))
	require.NoError(t, hostile.Prepare(t.Context()))
	innocent := load(t, r, guest{}.bytes(), "")
	require.NoError(t, innocently(t, innocent))

	goruntime.GC()
	resetPeak(t)
	result := report{Baseline: resident(t, "VmRSS")}
	begin()
	for len(result.Over) < attempts && (len(result.Over) == 0 || slices.Min(result.Over) > promisedOver+a.late) {
		a.attempt(t, hostile, &result)
	}
	result.Peak = resident(t, "VmHWM")
	if err := innocently(t, innocent); err != nil {
		result.Survivor = err.Error()
	}
	return result
}

// attempt makes the calls that attack, at once, and waits for the last.
func (a attack) attempt(t *testing.T, hostile *runtime.Tool, result *report) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var longest time.Duration
	for range max(a.callers, 1) {
		group.Go(func() {
			start := time.Now()
			outcome, err := hostile.Invoke(t.Context(), invocation(t))
			took := time.Since(start)
			if err == nil && a.check != nil {
				err = a.check(outcome)
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, took)
			result.Ends = append(result.Ends, string(outcome.Result.Kind))
			if err != nil {
				result.Problem = err.Error()
			}
		})
	}
	group.Wait()
	result.Over = append(result.Over, longest-a.deadline())
}

func newRuntime(t testing.TB, options runtime.Options) *runtime.Runtime {
	t.Helper()
	r, err := runtime.New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close(context.Background())) })
	return r
}

// load makes a tool of a module and the text of a manifest that follows its description.
func load(t testing.TB, r *runtime.Runtime, module []byte, text string) *runtime.Tool {
	t.Helper()
	return loadWithArgs(t, r, module, "[]", text)
}

// loadWithArgs is like load, and takes the template of the guest's command line.
func loadWithArgs(t testing.TB, r *runtime.Runtime, module []byte, args, text string) *runtime.Tool {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), module, 0o600))
	file := filepath.Join(dir, "tool.yaml")
	text = "schema: caisson/v1\nname: guest\ndescription: A test's guest.\nmodule: {path: guest.wasm, args: " + args + "}\n" + text
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	m, err := manifests.Load(file)
	require.NoError(t, err)
	loaded, err := r.Load(t.Context(), m, manifests.Grants{})
	require.NoError(t, err)
	return loaded
}

func invocation(t testing.TB) tool.Invocation {
	t.Helper()
	arguments, err := tool.ParseArguments("{}")
	require.NoError(t, err)
	return tool.Invocation{CallID: "the-call", Tool: "guest", Arguments: arguments}
}

// innocently makes a call that harms nobody.
func innocently(t testing.TB, innocent *runtime.Tool) error {
	_, err := innocent.Invoke(t.Context(), invocation(t))
	return err
}
