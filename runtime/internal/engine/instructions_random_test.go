//go:build !race

package engine

import (
	"context"
	"fmt"
	"hash/maphash"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/testsize"
)

// hostTypes are the types of values that are passed to the host. For each, it offers a function of two.
var hostTypes = []byte{typeI32, typeI64, typeF32, typeF64}

func hostName(t byte) string { return fmt.Sprintf("%x", t) }

var memorySeed = maphash.MakeSeed()

// combine notes the memory and two values that a guest passed, and returns another for them.
func combine(ctx context.Context, t byte, view []byte, stack []uint64) {
	mask := ^uint64(0)
	if t == typeI32 || t == typeF32 {
		mask >>= 32
	}
	n := noted(ctx)
	n.told = append(n.told, maphash.Bytes(memorySeed, view), stack[0]&mask, stack[1]&mask)
	data := view[:drawnMask+1]
	copy(data, append(slices.Clone(data[72:]), data[:72]...)) // functions find something else when they are called again
	stack[0] = (stack[0] ^ stack[1]<<1) & mask
}

// hostFunctions are combine for each type, as the engine offers it.
func hostFunctions() (all []hostfuncs.Function) {
	for _, t := range hostTypes {
		all = append(all, hostfuncs.Function{Module: "test", Name: hostName(t), Params: []hostfuncs.ValueType{hostfuncs.ValueType(t), hostfuncs.ValueType(t)},
			Results: []hostfuncs.ValueType{hostfuncs.ValueType(t)},
			Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
				view, _ := memory.View(0, 1<<16)
				combine(ctx, t, view, stack)
				return nil
			}})
	}
	return all
}

// onWazero runs a module's function on plain wazero.
func onWazero(ctx context.Context, config wazero.RuntimeConfig, source []byte) (drawnOutcome, error) {
	r := wazero.NewRuntimeWithConfig(ctx, config)
	defer r.Close(ctx)
	host := r.NewHostModuleBuilder("test")
	for _, t := range hostTypes {
		host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, module api.Module, stack []uint64) {
			view, _ := module.Memory().Read(0, 1<<16)
			combine(ctx, t, view, stack)
		}), []api.ValueType{t, t}, []api.ValueType{t}).Export(hostName(t))
	}
	if _, err := host.Instantiate(ctx); err != nil {
		return drawnOutcome{}, err
	}
	module, err := r.Instantiate(ctx, source)
	if err != nil {
		return drawnOutcome{}, err
	}
	told := &notes{}
	_, err = module.ExportedFunction("run").Call(context.WithValue(ctx, notesKey{}, told))
	if _, _, isTrap := trapOf(err); isTrap {
		return drawnOutcome{trapped: true, told: told.told}, nil
	}
	return drawnOutcome{told: told.told}, err
}

// TestRandomInstructions: functions of random instructions, with more live values than registers, behave as on wazero's
// interpreter. Calls of the host report the contents of their memory, and at the functions' ends their locals.
func TestRandomInstructions(t *testing.T) {
	accepted, e := acceptedInstructions(t), newEngine(t, Options{ModuleBytes: 4 * mebibyte, Functions: hostFunctions()}, nil)
	runPrograms(t, testsize.Of(150, 7000), nil, func(t *testing.T, seed uint64, report func(string)) {
		if err := asOnInterpreter(t.Context(), e, drawInstructions(seed, accepted)); err != nil {
			report(err.Error())
		}
	})
}

// TestMiscompiledSeeds: so do some of these modules that plain wazero (v1.12.0, amd64) gets wrong, which is the
// control. If drawing changes, TestRandomInstructions finds other seeds without the guard.
func TestMiscompiledSeeds(t *testing.T) {
	accepted, e := acceptedInstructions(t), newEngine(t, Options{Functions: hostFunctions()}, nil)
	wrong := 0
	for _, seed := range []uint64{281, 575, 1336, 1953, 2215} {
		source := drawInstructions(seed, accepted)
		assert.NoError(t, asOnInterpreter(t.Context(), e, source), "seed %d", seed)
		want, err := onWazero(t.Context(), wazero.NewRuntimeConfigInterpreter(), source)
		require.NoError(t, err)
		plainly, err := onWazero(t.Context(), runtimeConfig(), source)
		require.NoError(t, err)
		if !assert.ObjectsAreEqual(want, plainly) {
			wrong++
		}
	}
	assert.True(t, wrong > 0 || goruntime.GOARCH != "amd64", "control: none is wrong on plain wazero")
}

// asOnInterpreter reports how a module's behavior here differs from that on wazero's interpreter.
func asOnInterpreter(ctx context.Context, e *Engine, source []byte) error {
	want, err := onWazero(ctx, wazero.NewRuntimeConfigInterpreter(), source)
	if err != nil {
		return err
	}
	module, err := e.Compile(ctx, source)
	if err != nil {
		return err
	}
	got, _, err := ran(ctx, module, 0)
	if err == nil && !assert.ObjectsAreEqual(want, got) {
		err = fmt.Errorf("it told %x, and trapped: %v; want %x, %v", got.told, got.trapped, want.told, want.trapped)
	}
	return err
}
