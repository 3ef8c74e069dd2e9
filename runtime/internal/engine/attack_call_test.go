//go:build !race

package engine_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
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
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

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

// attack is a guest that uses as many resources as it can get.
type attack struct {
	name    string
	guest   guest
	limits  string        // of its manifest, in addition to the timeout
	timeout time.Duration // 0 means 300 ms
	callers int           // at once; 0 means 1
	late    time.Duration // the allowed delay of an answer in addition to the promised one
	end     tool.Kind
	// granted is the memory that the limits allow the guest in addition to promisedMemory, in bytes.
	granted int64
	// check looks at the outcome, where its end does not say it all.
	check func(tool.Outcome) error
	// control shows that the attack works in plain wazero.
	control control
}

// deadline returns the timeout of each call.
func (a attack) deadline() time.Duration {
	if a.timeout == 0 {
		return 300 * time.Millisecond
	}
	return a.timeout
}

// someAttacks are a sample of the attacks, with those on the way back.
func someAttacks() []attack {
	return append(testsize.QuickSample(wayBackAttacks(), 1), testsize.Sample(attacks(), 3)...)
}

func TestAttack(t *testing.T) { contain(t, someAttacks()) }

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

// innocently calls the innocent tool.
func innocently(t testing.TB, innocent *runtime.Tool) error {
	_, err := innocent.Invoke(t.Context(), invocation(t))
	return err
}

// control runs an attack in plain wazero, with its own WASI, to show that it works there. One of neverEnds, least and
// problem names the effect that it shows; if none is set, it shows that the guest is accepted.
type control struct {
	neverEnds bool   // the guest runs long after the deadline of its context
	least     int64  // bytes that the guest takes of the host's memory
	problem   string // part of the guest's end
	closing   bool   // wazero is told to end guests when their context is done
	start     string // the function that is called; empty means _start
	guest     *guest // a smaller attack of the same kind; nil: the row's own
}

// outlived is the time that a guest must run after its deadline for a control to hold.
const outlived = 500 * time.Millisecond

const briefly = 100 * time.Millisecond // a control's deadline

func TestAttackControl(t *testing.T) { succeed(t, someAttacks()) }

// succeed shows that attacks work in plain wazero, each in a subtest.
func succeed(t *testing.T, all []attack) {
	eachTrial(t, all, func(a attack) trial {
		one := trial{a.name, time.Minute, a.granted > 0 || a.control.least > 0 || a.end == tool.Memory}
		if a.control.neverEnds {
			one.patience = briefly + outlived
		}
		return one
	}, func(a attack, t *testing.T) report { return a.control.perform(t, a) }, func(a attack, t *testing.T, e ending) { a.control.judge(t, e) })
}

func (c control) judge(t *testing.T, e ending) {
	t.Logf("%d MiB over the baseline; killed: %v; %s", e.grown()>>20, e.killed, e.Problem)
	switch {
	case c.neverEnds:
		assert.True(t, e.killed && !e.reported, "it ended: %s %s", e.Problem, e.output)
		return
	case c.problem != "":
		assert.Contains(t, e.Problem, c.problem)
	}
	require.True(t, e.reported, e.output)
	if e.Baseline > 0 && c.least > 0 {
		assert.GreaterOrEqual(t, e.grown(), c.least)
	}
	if c.problem == "" && c.least == 0 {
		assert.Empty(t, e.Problem)
	}
}

func (c control) perform(t *testing.T, a attack) report {
	if c.guest != nil {
		a.guest = *c.guest
	}
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(c.closing))
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	compiled, err := r.CompileModule(ctx, a.guest.bytes())
	require.NoError(t, err)
	silent, talker, err := os.Pipe()
	require.NoError(t, err)
	defer talker.Close()
	config := wazero.NewModuleConfig().WithName("").WithStdin(silent).WithStdout(&bytes.Buffer{}).WithStderr(&bytes.Buffer{}).
		WithSysNanosleep().WithRandSource(rand.Reader).WithEnv("SECRET", "of the host's").WithStartFunctions()
	goruntime.GC()
	resetPeak(t)
	result := report{Baseline: resident(t, "VmRSS")}
	begin()
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	var mu sync.Mutex
	var group sync.WaitGroup
	for range max(a.callers, 1) {
		group.Go(func() {
			if err := c.call(ctx, r, compiled, config); err != nil {
				mu.Lock()
				defer mu.Unlock()
				result.Problem = err.Error()
			}
		})
	}
	group.Wait()
	result.Peak = resident(t, "VmHWM")
	return result
}

func (c control) call(ctx context.Context, r wazero.Runtime, compiled wazero.CompiledModule, config wazero.ModuleConfig) error {
	instance, err := r.InstantiateModule(ctx, compiled, config)
	if err != nil {
		return err
	}
	start := c.start
	if start == "" {
		start = "_start"
	}
	_, err = instance.ExportedFunction(start).Call(ctx)
	return errors.Join(err, instance.Close(context.WithoutCancel(ctx)))
}
