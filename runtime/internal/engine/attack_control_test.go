//go:build !race

package engine_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/tool"
)

// control runs an attack in wazero alone, with its own WASI, to show that it works there.
// What it shows is named by one field, of neverEnds, least and problem; if none is set,
// that the guest is let in.
type control struct {
	neverEnds bool   // the guest runs long after the deadline of its context
	least     int64  // bytes that the guest takes of the host's memory
	problem   string // part of the guest's end
	closing   bool   // wazero is told to end guests when their context is done
	start     string // the function that is called; empty means _start
	guest     *guest // a smaller attack of the same kind; nil: the row's own
}

// outlived is how long after its deadline a guest must run for a control to hold.
const outlived = 500 * time.Millisecond

const briefly = 100 * time.Millisecond // a control's deadline

func TestAttackControl(t *testing.T) { succeed(t, testsize.Sample(attacks(), 8)) }

// succeed shows that attacks work in wazero alone, each in a subtest.
func succeed(t *testing.T, all []attack) {
	trials := make([]trial, len(all))
	for i, a := range all {
		trials[i] = trial{a.name, time.Minute, a.granted > 0 || a.control.least > 0 || a.end == tool.Memory}
		if a.control.neverEnds {
			trials[i].patience = briefly + outlived
		}
	}
	endings := together(t, trials)
	for i, a := range all {
		t.Run(a.name, func(t *testing.T) {
			if performing() {
				a.control.perform(t, a).send(t)
				return
			}
			a.control.judge(t, endings[i])
		})
	}
}

func (c control) judge(t *testing.T, e ending) {
	require.NoError(t, e.failure)
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
