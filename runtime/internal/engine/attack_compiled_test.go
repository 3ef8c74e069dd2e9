//go:build !race

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// Endless loops as compilers write them, with and without optimisation. A module's loops are
// all performed in one process, one after the other and then many at once.

// compiled is the guest endless as a compiler made it.
type compiled struct {
	name  string
	file  string   // below the guest's folder
	flags []string // of the go command, which makes the file; nil for a file that is there
	forms []string // how its loops are written
}

const endlessFolder = "internal/guests/endless"

func compiledGuests() []compiled {
	inC := []string{"for", "while", "do", "goto", "return", "calling"}
	inRust := []string{"empty", "local", "for", "while", "goto", "return", "calling", "iterator"}
	inZig := []string{"empty", "for", "while", "do", "goto", "return", "calling"}
	inAssemblyScript := []string{"empty", "for", "while", "do", "nested", "return", "calling"}
	return []compiled{
		{"C at O0", "c/endless-O0.wasm", nil, inC},
		{"C at O2", "c/endless-O2.wasm", nil, inC},
		{"Rust at O0", "rust/endless-O0.wasm", nil, inRust},
		{"Rust at O3", "rust/endless-O3.wasm", nil, inRust},
		{"Zig in Debug", "zig/endless-Debug.wasm", nil, inZig},
		{"Zig in ReleaseFast", "zig/endless-ReleaseFast.wasm", nil, inZig},
		{"Zig in ReleaseSmall", "zig/endless-ReleaseSmall.wasm", nil, inZig},
		{"AssemblyScript at O0", "assemblyscript/endless-O0.wasm", nil, inAssemblyScript},
		{"AssemblyScript at O2", "assemblyscript/endless-O2.wasm", nil, inAssemblyScript},
		{"Go", "endless.wasm", []string{}, inC},
		{"Go without optimisation", "endless-plain.wasm", []string{"-gcflags=all=-N -l"}, inC},
	}
}

// positions say what precedes the loop: a read of standard input, a call, a call through a table; or that the loop is
// in a callback.
var positions = []string{"read", "call", "table", "callback"}

// once is the form without a loop.
const once = "once"

// endlessCase selects one of a guest's functions.
type endlessCase struct{ position, form string }

func (c endlessCase) String() string { return c.position + " " + c.form }

func casesOf(forms ...string) (all []endlessCase) {
	for _, position := range positions {
		for _, form := range forms {
			all = append(all, endlessCase{position, form})
		}
	}
	return all
}

func (c compiled) read(t *testing.T) []byte {
	t.Helper()
	root, err := guests.Root()
	require.NoError(t, err)
	file := filepath.Join(root, filepath.FromSlash(endlessFolder), filepath.FromSlash(c.file))
	if c.flags != nil && !performing() { // otherwise the process that waits for this one made it
		require.NoError(t, guests.Build(t.Context(), root, "./"+endlessFolder, file, c.flags...))
	}
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	return source
}

// TestAttackCompiledLoops: no loop of any compiler's outlives its call's deadline.
func TestAttackCompiledLoops(t *testing.T) {
	eachCompiled(t, 5*time.Second, compiled.performLoops, func(t *testing.T, e ending) {
		require.True(t, e.reported, "a loop outlived its deadline by %s, the last of: %s", 5*time.Second, e.output)
		t.Logf("%s after the deadline at worst", slices.Max(e.Over).Round(time.Millisecond))
		assert.LessOrEqual(t, slices.Max(e.Over), promisedOver, e.Problem)
		assert.Equal(t, []string{string(tool.Deadline)}, slices.Compact(slices.Sorted(slices.Values(e.Ends))), e.Problem)
		assert.Empty(t, e.Problem)
		assert.Empty(t, e.Survivor, "calls that do not loop")
	})
}

// TestAttackCompiledLoopsControl: in plain wazero, each of them does, and functions without a loop end.
func TestAttackCompiledLoopsControl(t *testing.T) {
	eachCompiled(t, time.Minute, compiled.performPlainly, func(t *testing.T, e ending) {
		require.True(t, e.reported, e.output)
		assert.Empty(t, e.Problem)
	})
}

// eachCompiled has a process perform for each guest, and judges in a subtest for each.
func eachCompiled(t *testing.T, patience time.Duration, perform func(compiled, *testing.T, []byte) report, judge func(*testing.T, ending)) {
	var trials []trial
	some := testsize.Sample(compiledGuests(), 1)
	for _, c := range some {
		trials = append(trials, trial{name: c.name, patience: patience})
		if !performing() {
			c.read(t)
		}
	}
	endings := atOnce(t, max(1, goruntime.NumCPU()/2), trials)
	for i, c := range some {
		t.Run(c.name, func(t *testing.T) {
			if performing() {
				perform(c, t, c.read(t)).send(t)
				os.Exit(0) // loops that still run would keep the process from ending
			}
			require.NoError(t, endings[i].failure)
			judge(t, endings[i])
		})
	}
}

// Deadlines of calls. A single call has enough time for each guest to reach its loop. Concurrent calls have more, since
// they share the processors.
const (
	deadlineSingle     = 60 * time.Millisecond
	deadlineConcurrent = 250 * time.Millisecond
	concurrentCallers  = 16
)

func (c compiled) performLoops(t *testing.T, source []byte) report {
	r := newRuntime(t, runtime.Options{})
	hostile := func(timeout time.Duration) *runtime.Tool {
		return loadWithArgs(t, r, source, `["{position}", "{form}"]`, fmt.Sprintf(
			"parameters: {type: object, properties: {position: {type: string}, form: {type: string}}, required: [position, form]}\nlimits: {timeout: %s}", timeout))
	}
	single, concurrent, patient := hostile(deadlineSingle), hostile(deadlineConcurrent), hostile(time.Minute)
	require.NoError(t, single.Prepare(t.Context()))
	var result report
	begin()
	cases := casesOf(c.forms...)
	for _, one := range cases {
		result.attempt(t, single, deadlineSingle, one)
	}
	for first := 0; first < len(cases); first += concurrentCallers {
		callers := make([]endlessCase, concurrentCallers)
		for i := range callers {
			callers[i] = cases[(first+i)%len(cases)]
		}
		result.attempt(t, concurrent, deadlineConcurrent, callers...)
	}
	for _, one := range casesOf(once) {
		if _, err := patient.Invoke(t.Context(), one.invocation(t)); err != nil {
			result.Survivor += fmt.Sprintf("%s: %s; ", one, err)
		}
	}
	return result
}

// attempt makes concurrent calls, until all answers come in time, and adds the shortest delay of each to the report.
func (r *report) attempt(t *testing.T, hostile *runtime.Tool, deadline time.Duration, cases ...endlessCase) {
	fmt.Println(cases)
	best := make([]time.Duration, len(cases))
	for n := 0; n == 0 || n < attempts && slices.Max(best) > promisedOver; n++ {
		var group sync.WaitGroup
		var mu sync.Mutex
		for i, one := range cases {
			group.Go(func() {
				start := time.Now()
				outcome, err := hostile.Invoke(t.Context(), one.invocation(t))
				over := time.Since(start) - deadline
				mu.Lock()
				defer mu.Unlock()
				if best[i] = min(best[i], over); n == 0 {
					best[i] = over
				}
				r.Ends = append(r.Ends, string(outcome.Result.Kind))
				if outcome.Result.Kind != tool.Deadline {
					r.Problem += fmt.Sprintf("%s: %q, %v; ", one, outcome.Result.Kind, err)
				}
			})
		}
		group.Wait()
	}
	r.Over = append(r.Over, best...)
	if slices.Max(best) > promisedOver {
		r.Problem += fmt.Sprintf("%s: %s after the deadline; ", cases, best)
	}
}

func (c endlessCase) invocation(t *testing.T) tool.Invocation {
	t.Helper()
	arguments, err := tool.ParseArguments(fmt.Sprintf(`{"position": %q, "form": %q}`, c.position, c.form))
	require.NoError(t, err)
	return tool.Invocation{CallID: "the-call", Tool: "guest", Arguments: arguments}
}

// performPlainly has all cases run in plain wazero, at once, and looks after a while which of them ended.
func (c compiled) performPlainly(t *testing.T, source []byte) report {
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig())
	wasi_snapshot_preview1.MustInstantiate(t.Context(), r)
	module, err := r.CompileModule(t.Context(), source)
	require.NoError(t, err)
	all := casesOf(append([]string{once}, c.forms...)...)
	// A loop keeps its processor, and a collection would wait for it.
	goruntime.GOMAXPROCS(len(all) + 2)
	debug.SetGCPercent(-1)
	time.AfterFunc(time.Minute, func() { os.Exit(1) }) // also if no parent waits for this process
	begin()
	var mu sync.Mutex
	ended := map[endlessCase]error{}
	ctx, cancel := context.WithTimeout(t.Context(), briefly)
	defer cancel()
	for _, one := range all {
		go func() {
			config := wazero.NewModuleConfig().WithName("").WithArgs("guest", one.position, one.form).WithStdin(strings.NewReader("{}"))
			_, err := r.InstantiateModule(ctx, module, config)
			mu.Lock()
			defer mu.Unlock()
			ended[one] = err
		}()
	}
	time.Sleep(briefly + outlived)
	// Loops and cases without one run for the same time.
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(ended) >= len(positions)
	}, toleratedOver, 10*time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	var result report
	for one, err := range ended {
		if exit, ok := errors.AsType[*sys.ExitError](err); one.form != once || err != nil && (!ok || exit.ExitCode() != 0) {
			result.Problem += fmt.Sprintf("%s ended: %v; ", one, err)
		}
	}
	return result
}
