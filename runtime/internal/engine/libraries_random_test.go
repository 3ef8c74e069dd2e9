package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// notesKey is the key of the notes of a run in its context.
type notesKey struct{}

// notes are the values that the modules of a run have reported to the host, in order.
type notes struct{ told []uint64 }

func noted(ctx context.Context) *notes { n, _ := ctx.Value(notesKey{}).(*notes); return n }

// seen is the value that the host sees at an address of the caller's memory.
func seen(memory []byte, in bool) uint64 {
	if !in {
		return 1
	}
	return bits(memory)
}

// drawnHost are the observers, as the engine offers them.
func drawnHost() []hostfuncs.Function {
	return []hostfuncs.Function{
		{Module: "test", Name: "note", Params: []hostfuncs.ValueType{hostfuncs.I64}, Call: func(ctx context.Context, _ hostfuncs.Memory, stack []uint64) error {
			n := noted(ctx)
			n.told = append(n.told, stack[0])
			return nil
		}},
		{Module: "test", Name: "see", Params: []hostfuncs.ValueType{hostfuncs.I32}, Results: []hostfuncs.ValueType{hostfuncs.I64}, Call: func(_ context.Context, m hostfuncs.Memory, stack []uint64) error {
			stack[0] = seen(m.View(uint32(stack[0]), 8))
			return nil
		}},
	}
}

// drawnOutcome is the outcome of a run of drawn modules.
type drawnOutcome struct {
	result  uint64
	trapped bool
	told    []uint64
}

// plainly runs a drawn source on wazero's interpreter, each module as it was drawn.
func (s drawnSource) plainly(ctx context.Context, first ...Initializer) (drawnOutcome, error) {
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer runtime.Close(ctx)
	told := &notes{}
	ctx = context.WithValue(ctx, notesKey{}, told)
	_, err := runtime.NewHostModuleBuilder("test").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		told.told = append(told.told, stack[0])
	}), []api.ValueType{api.ValueTypeI64}, nil).Export("note").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
		memory, ok := memoryOf(m)
		if !ok {
			stack[0] = seen(nil, false)
			return
		}
		stack[0] = seen(memory.Read(uint32(stack[0]), 8))
	}), []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64}).Export("see").Instantiate(ctx)
	if err != nil {
		return drawnOutcome{}, err
	}
	made := map[string]api.Module{}
	for _, name := range append(slices.Clone(s.order), "main") {
		source := s.Libraries[name]
		if name == "main" {
			source = s.Module
		}
		compiled, err := runtime.CompileModule(ctx, source)
		if err != nil {
			return drawnOutcome{}, err
		}
		if made[name], err = runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(name).WithStartFunctions()); err != nil {
			if _, _, isTrap := trapOf(err); isTrap {
				return drawnOutcome{trapped: true, told: told.told}, nil
			}
			return drawnOutcome{}, err
		}
	}
	for _, f := range first {
		if _, err := made[cmp.Or(f.Library, "main")].ExportedFunction(f.Function).Call(ctx); err != nil {
			return drawnOutcome{}, errTrappedBefore
		}
	}
	if len(first) > 0 {
		told.told = nil // a started program tells nothing of this
	}
	results, err := made["main"].ExportedFunction("run").Call(ctx)
	if err != nil {
		if _, _, isTrap := trapOf(err); !isTrap {
			return drawnOutcome{}, err
		}
		return drawnOutcome{trapped: true, told: told.told}, nil
	}
	return drawnOutcome{result: results[0], told: told.told}, nil
}

var errTrappedBefore = errors.New("the function that starts the module has trapped")

// ran runs a drawn source here.
func ran(ctx context.Context, r runner, fuel int64) (drawnOutcome, Usage, error) {
	told, result := &notes{}, uint64(0)
	usage, err := r.Run(context.WithValue(ctx, notesKey{}, told), Run{Function: "run", Result: &result, MemoryLimit: 64 * mebibyte, Fuel: fuel})
	if failure, ok := errors.AsType[*Error](err); ok && failure.Kind == ErrTrap {
		return drawnOutcome{trapped: true, told: told.told}, usage, nil
	}
	return drawnOutcome{result: result, told: told.told}, usage, err
}

const drawnFuel = 1 << 20

// TestRandomModulesWithLibraries: modules with libraries behave as on wazero's interpreter, in each of several runs,
// whether their instances are reset or copies of a snapshot; and runs need exactly the reported fuel.
func TestRandomModulesWithLibraries(t *testing.T) {
	e := newEngine(t, Options{ModuleBytes: 4 * mebibyte, Functions: drawnHost()}, nil)
	var returned, trapped, long, started, kept, libraries int
	for seed := range uint64(testsize.Of(150, 4000)) {
		source, err := drawSource(seed)
		require.NoError(t, err, "seed %d", seed)
		module, err := e.CompileIf(t.Context(), source.Source, func(*wasm.Linked) error { return nil })
		require.NoError(t, err, "seed %d", seed)
		got, usage, err := ran(t.Context(), module, drawnFuel)
		if errors.Is(err, ErrFuel) {
			long++
			continue
		}
		require.NoError(t, err, "seed %d", seed)
		want, err := source.plainly(t.Context())
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, want, got, "seed %d", seed)
		libraries += len(source.Libraries)
		if module.NewInstances() == "" {
			kept++
		}
		for range 3 {
			again, same, err := ran(t.Context(), module, drawnFuel)
			require.NoError(t, err, "seed %d", seed)
			require.Equal(t, want, again, "seed %d", seed)
			require.Equal(t, usage, same, "seed %d", seed)
		}
		if want.trapped {
			trapped++
			continue
		}
		returned++
		again, _, err := ran(t.Context(), module, usage.Fuel)
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, want, again, "seed %d", seed)
		_, less, err := ran(t.Context(), module, usage.Fuel-1)
		require.ErrorIs(t, err, ErrFuel, "seed %d", seed)
		assert.LessOrEqual(t, less.Fuel, usage.Fuel-1)
		if resumed(t, seed, source, module) {
			started++
		}
	}
	t.Logf("%d returned, %d trapped, %d took long, %d were started, %d are reset, %d libraries", returned, trapped, long, started, kept, libraries)
	for what, n := range map[string]int{"returned": returned, "trapped": trapped, "started": started, "reset": kept} {
		assert.Greater(t, n, 10, fmt.Sprintf("too few %s", what))
	}
}

// resumed runs a module that was started once for all runs. It returns false if it cannot be.
func resumed(t *testing.T, seed uint64, source drawnSource, module *Module) bool {
	t.Helper()
	var first []Initializer
	for _, name := range source.order {
		if seed%3 > 0 {
			first = append(first, Initializer{Library: name, Function: "init"})
		}
	}
	first = append(first, Initializer{Function: "init"})
	program, err := module.Start(t.Context(), Start{
		Context:     func(ctx context.Context) context.Context { return context.WithValue(ctx, notesKey{}, &notes{}) },
		MemoryLimit: 64 * mebibyte, Timeout: time.Minute, Fuel: drawnFuel, Initialize: first,
	})
	if errors.Is(err, ErrNotStarted) {
		return false
	}
	require.NoError(t, err, "seed %d", seed)
	want, err := source.plainly(t.Context(), first...)
	require.NoError(t, err, "seed %d", seed)
	for range 4 { // there are two instances; the others are copies
		got, _, err := ran(t.Context(), program, 10*drawnFuel)
		if errors.Is(err, ErrFuel) {
			return false
		}
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, want, got, "seed %d", seed)
	}
	require.NoError(t, program.Drop())
	return true
}
