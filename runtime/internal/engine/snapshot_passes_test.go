//go:build !race

// Nothing here runs at the same time as anything else, and the race detector would take minutes.

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// This file shows that the passes for snapshots suffice for a snapshot, with a minimal engine.

// forSnapshots rewrites a module with all passes, and exports its start function.
func forSnapshots(t *testing.T, source []byte) *wasm.Rewritten {
	t.Helper()
	description := inspect(t, source)
	analysis, err := wasm.ValidateWithin(t.Context(), source, description, unbounded(), wasm.Features{})
	require.NoError(t, err)
	r, err := wasm.Rewrite(t.Context(), source, analysis, wasm.Passes{Meter: true, Depth: true, Globals: true, Data: true, Fork: true})
	require.NoError(t, err)
	description = inspect(t, r.Source)
	r.Source, err = wasm.ExportStart(r.Source, description)
	require.NoError(t, err)
	return r
}

// plainRuntime offers the meter, without limits, what modules of the specification's tests
// import, and WASI with another way to exit: one that leaves the instance open.
func plainRuntime(t *testing.T) wazero.Runtime {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig())
	t.Cleanup(func() { require.NoError(t, r.Close(context.WithoutCancel(t.Context()))) })
	_, err := r.NewHostModuleBuilder(wasm.MeterModule).NewFunctionBuilder().
		WithFunc(func(counter int64) int64 { return counter + 1<<30 }).Export(wasm.MeterRefill).Instantiate(t.Context())
	require.NoError(t, err)
	wasi := r.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	wasi.NewFunctionBuilder().WithFunc(func(code uint32) { panic(sys.NewExitError(code)) }).Export("proc_exit")
	_, err = wasi.Instantiate(t.Context())
	require.NoError(t, err)
	return r
}

// instantiated returns an instance whose start function ran.
func instantiated(t *testing.T, r wazero.Runtime, source []byte, data []wasm.Segment, config wazero.ModuleConfig) (api.Module, error) {
	t.Helper()
	instance, err := r.InstantiateWithConfig(t.Context(), source, config.WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	for _, segment := range data {
		require.True(t, instance.Memory().Write(segment.Offset, segment.Bytes))
	}
	if start := instance.ExportedFunction(wasm.StartName); start != nil {
		_, err = start.Call(t.Context())
	}
	return instance, err
}

// memoryBytes returns the memory, not a copy; nil if there is none.
func memoryBytes(instance api.Module) []byte {
	memory, ok := memoryOf(instance)
	if !ok {
		return nil
	}
	contents, _ := memory.Read(0, memory.Size())
	return contents
}

// TestHostWritesTheSameMemory runs all modules of the specification's tests that can be instantiated without other
// modules, including their start functions: the host writes the same memory as instantiation, and modules whose
// instantiation fails still fail.
func TestHostWritesTheSameMemory(t *testing.T) {
	out := moduleFolder(t, "github.com/tetratelabs/wazero")
	root := filepath.Join(out, "internal", "integration_test", "spectest")
	spectest := read(t, filepath.Join(root, "testdata", "spectest.wasm"))
	r := plainRuntime(t)
	_, err := r.InstantiateWithConfig(t.Context(), spectest, wazero.NewModuleConfig().WithName("spectest"))
	require.NoError(t, err)
	modules, err := filepath.Glob(filepath.Join(root, "v2", "testdata", "*.wasm"))
	require.NoError(t, err)

	same, lifted, failing := 0, 0, 0
	for _, file := range testsize.Sample(modules, 400) {
		source := read(t, file)
		description, err := wasm.Inspect(source)
		if err != nil {
			continue
		}
		if _, err = wasm.ValidateWithin(t.Context(), source, description, unbounded(), wasm.Features{}); err != nil {
			continue
		}
		rewritten := forSnapshots(t, source)
		want, failure := instantiated(t, r, source, nil, wazero.NewModuleConfig())
		got, err := instantiated(t, r, rewritten.Source, rewritten.Data, wazero.NewModuleConfig())
		if failure != nil {
			require.Error(t, err, file)
			failing++
			continue
		}
		require.NoError(t, err, file)
		require.True(t, bytes.Equal(memoryBytes(want), memoryBytes(got)), file)
		same++
		if len(rewritten.Data) > 0 {
			lifted++
		}
	}
	t.Logf("%d instances are the same, %d of them with data that the host wrote; %d fail on both sides", same, lifted, failing)
	assert.Greater(t, same, testsize.Of(100, 1000))
	assert.Greater(t, lifted, testsize.Of(2, 10))
	assert.Greater(t, failing, testsize.Of(2, 10))
}

var errSaved = errors.New("saved")

// forkHost is a host that saves one command at its first read of standard input, and
// resumes it there for each call.
type forkHost struct {
	instance api.Module
	enter    api.Function
	input    io.Reader
	output   bytes.Buffer
	reads    int // calls of ForkReached for standard input in this call

	stack   experimental.Snapshot // to be put back; nil before it is saved, and once it is used
	memory  []byte                // nil before it is saved
	globals map[string]uint64
}

func newForkHost(t *testing.T, source []byte) *forkHost {
	t.Helper()
	h := &forkHost{globals: map[string]uint64{}}
	rewritten := forSnapshots(t, source)
	require.True(t, rewritten.Forks)
	require.Empty(t, rewritten.Unrestorable)
	require.NotEmpty(t, rewritten.Globals)
	require.NotEmpty(t, rewritten.Data)
	r := plainRuntime(t)
	_, err := r.NewHostModuleBuilder(wasm.ForkModule).
		NewFunctionBuilder().WithFunc(h.reached).Export(wasm.ForkReached).
		NewFunctionBuilder().WithFunc(h.resume).Export(wasm.ForkResume).Instantiate(t.Context())
	require.NoError(t, err)
	config := wazero.NewModuleConfig().WithStdin(h).WithStdout(&h.output)
	h.instance, err = instantiated(t, r, rewritten.Source, rewritten.Data, config)
	require.NoError(t, err)
	h.enter = h.instance.ExportedFunction(wasm.ForkName)
	for _, global := range rewritten.Globals {
		h.globals[global.Name] = 0
	}
	if rewritten.DepthGlobal != "" {
		h.globals[rewritten.DepthGlobal] = 0
	}
	return h
}

// Read implements io.Reader: what the command finds on standard input.
func (h *forkHost) Read(p []byte) (int, error) { return h.input.Read(p) }

func (h *forkHost) resume(context.Context) int32 {
	if stack := h.stack; stack != nil {
		h.stack = nil
		stack.Restore([]uint64{1})
	}
	return 0
}

func (h *forkHost) reached(ctx context.Context, descriptor uint32) uint32 {
	if descriptor != 0 {
		return 0
	}
	if h.reads++; h.reads > 1 {
		return 0
	}
	h.stack = experimental.GetSnapshotter(ctx).Snapshot()
	if h.memory == nil {
		h.memory = bytes.Clone(memoryBytes(h.instance))
		for name := range h.globals {
			h.globals[name] = h.instance.ExportedGlobal(name).Get()
		}
		panic(errSaved)
	}
	return 0
}

// call runs the command with an input, from where it first reads if that is known.
func (h *forkHost) call(ctx context.Context, input []byte) ([]byte, error) {
	h.input, h.reads = bytes.NewReader(input), 0
	h.output.Reset()
	if h.memory != nil {
		memory := memoryBytes(h.instance)
		clear(memory[copy(memory, h.memory):])
		for name, value := range h.globals {
			h.instance.ExportedGlobal(name).(api.MutableGlobal).Set(value)
		}
	}
	_, err := h.enter.Call(experimental.WithSnapshotter(ctx))
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	return bytes.Clone(h.output.Bytes()), err
}

// Commands of several compilers, one of which answers a call before it reads, started once and resumed where they first
// read: each call finds the state after the start, and nothing of the calls before it.
func TestCommandsResumeWhereTheyRead(t *testing.T) {
	for _, language := range testsize.Sample([]guests.Language{guests.C, guests.Rust, guests.GoWarm}, 2) {
		t.Run(string(language), func(t *testing.T) {
			source := command(t, language)
			h := newForkHost(t, source)
			output, err := h.call(t.Context(), nil)
			require.ErrorIs(t, err, errSaved)
			require.Empty(t, output, "nothing is written before the first read")

			for n := range 20 {
				call := guests.NewCall(30 + 100*n)
				output, err = h.call(t.Context(), call.Input)
				require.NoError(t, err)
				require.NoError(t, call.Check(output), "the output counts the calls that an instance has seen")

				_, err = h.call(t.Context(), []byte("{"))
				var exit *sys.ExitError
				require.ErrorAs(t, err, &exit, "a call that fails harms none that follows")
			}
		})
	}
}

// Without putting memory and globals back, the same host would see calls count up, or fail:
// the test above sees state that is left over.
func TestResumedCommandsKeepStateUnlessItIsPutBack(t *testing.T) {
	source := command(t, guests.C)
	h := newForkHost(t, source)
	call := guests.NewCall(100)
	_, err := h.call(t.Context(), nil)
	require.ErrorIs(t, err, errSaved)
	_, err = h.call(t.Context(), call.Input)
	require.NoError(t, err)

	h.memory = memoryBytes(h.instance) // the memory after the call
	output, err := h.call(t.Context(), call.Input)
	require.False(t, err == nil && call.Check(output) == nil)
}

// stackOf returns the size of the stack on which wazero runs a function, in bytes.
func stackOf(t *testing.T, function api.Function) int {
	t.Helper()
	stack := exportOf(function).stack
	require.True(t, stack.IsValid())
	return stack.Len()
}

// stackSizes are those of an instance of a program.
type stackSizes struct{ native, inUse, saved int }

func (i *instance) stackSizes(t *testing.T) stackSizes {
	t.Helper()
	return stackSizes{stackOf(t, i.called.Function), cap(i.stack.inUse), cap(i.stack.before)}
}

// residentNow returns this process's resident memory in bytes, after unused memory was returned to the system. It
// returns 0 if the system does not report it.
func residentNow(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	var kilobytes int64
	_, err = fmt.Sscan(after, &kilobytes)
	require.NoError(t, err)
	return kilobytes << 10
}

// TestResumedCallsKeepTheirStack: after 100,000 calls of one program its instance has the stack
// that it had after one. It is kept when its stack has become long, and the next call has the short one again.
func TestResumedCallsKeepTheirStack(t *testing.T) {
	const calls = 100_000
	s := variant{scripted{}, true, true}.subject(t, 0)
	for len(s.pooled()) > 1 { // a start makes more
		s.engine.idle.take(s.key).close(t.Context())
	}
	i := s.pooled()[0]
	in := &session{}
	ctx := context.WithValue(t.Context(), sessionKey{}, in)
	resume := func(operations ...operation) error {
		*in = session{script: operations, reports: in.reports[:0]}
		_, err := s.run(ctx, 0)
		return err
	}
	require.NoError(t, resume())
	sizes, resident := i.stackSizes(t), residentNow(t)
	for range calls {
		require.NoError(t, resume())
	}
	require.Equal(t, 1, len(s.pooled()))
	require.Same(t, i, s.pooled()[0], "all calls were in one instance")
	assert.Equal(t, sizes, i.stackSizes(t))
	grown := residentNow(t) - resident
	t.Logf("%+v; resident: %d bytes, and %d more after %d calls", sizes, resident, grown, calls)
	assert.Less(t, grown, int64(4*mebibyte))

	require.ErrorIs(t, resume(operation{code: opDescend, a: math.MaxUint32}), ErrTrap)
	stack, known := i.nativeStacks()
	assert.True(t, known)
	assert.Greater(t, stack, int64(mostNativeStack), "a stack that grew is seen")
	assert.LessOrEqual(t, stack, int64(mostResumedStack))
	require.Len(t, s.pooled(), 1)
	require.Same(t, i, s.pooled()[0])
	require.NoError(t, resume())
	assert.Equal(t, sizes, i.stackSizes(t))
}

// TestNewSnapshotsGrowTheStack is the control: with a new snapshot of wazero's for each call
// the stack becomes 16 bytes longer each time.
func TestNewSnapshotsGrowTheStack(t *testing.T) {
	const calls = 2_000
	source := command(t, guests.C)
	h := newForkHost(t, source)
	_, err := h.call(t.Context(), nil)
	require.ErrorIs(t, err, errSaved)
	call := guests.NewCall(30)
	resume := func() {
		output, err := h.call(t.Context(), call.Input)
		require.NoError(t, err)
		require.NoError(t, call.Check(bytes.Clone(output)))
	}
	resume()
	before := stackOf(t, h.enter)
	for range calls {
		resume()
	}
	grown := stackOf(t, h.enter) - before
	t.Logf("%d bytes, and %d more after %d calls", before, grown, calls)
	assert.GreaterOrEqual(t, grown, 16*calls)
}
