//go:build !race

package engine

import (
	"context"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/internal/programs"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

// This file compares the verifier's verdict about metered modules with their behavior: if it accepts a random mutant, a
// run shows whether it is right. The interpreter runs them, because it can be stopped whatever it executes.

var provedMutants = flag.Int("mutants", testsize.Of(1_000, 6_000), "how many metered modules with a changed byte are verified and, where that succeeds, run")

// TestMutantsThatAreProvedEnd changes bytes of random programs that were metered. Where the
// result is valid and proved, it comes to its end or to the third refill.
func TestMutantsThatAreProvedEnd(t *testing.T) {
	const each = 100 // mutants of a program
	refused, ran, ends := 0, 0, map[string]int{}
	for seed := range uint64(*provedMutants/each + 1) {
		random := rand.New(rand.NewPCG(seed, 7))
		program := programs.EndlessCommand(seed)
		finished := finish(t, program)
		code := codeOf(t, finished)
		for range each {
			mutant := slices.Clone(finished)
			for range 1 + random.IntN(2) {
				mutant[code+random.IntN(len(mutant)-code)] = byte(random.IntN(256))
			}
			if !isValid(mutant) {
				continue
			}
			if metered.Verify(t.Context(), mutant) != nil {
				refused++
				continue
			}
			ran++
			end := interpret(t.Context(), mutant, 5*time.Second)
			require.NotErrorIs(t, end, context.DeadlineExceeded, "seed %d: %x\n%s", seed, mutant, program)
			ends[ending(end)]++
		}
	}
	t.Logf("%d refused, %d ran: %v", refused, ran, ends)
	assert.Greater(t, refused, *provedMutants/50)
	assert.Greater(t, ran, *provedMutants/50)
	assert.Greater(t, ends["refill"], *provedMutants/100)
}

// TestMutantsWithoutProof is the control: of the programs that ask for more where the meter is 0,
// and not where it is negative, some do not end.
func TestMutantsWithoutProof(t *testing.T) {
	for seed := range uint64(100) {
		finished := finish(t, programs.EndlessCommand(seed))
		for at := codeOf(t, finished); at < len(finished); at++ {
			if finished[at] == 0x59 { // i64.ge_s becomes i64.ne
				finished[at] = 0x52
			}
		}
		if isValid(finished) && errors.Is(interpret(t.Context(), finished, 300*time.Millisecond), context.DeadlineExceeded) {
			assert.Error(t, metered.Verify(t.Context(), finished))
			return
		}
	}
	assert.Fail(t, "all of them end")
}

// finish returns the rewritten module of a program, as the engine compiles it.
func finish(t *testing.T, program *programs.Program) []byte {
	t.Helper()
	source, err := program.Module()
	require.NoError(t, err)
	description, err := wasm.Inspect(source)
	require.NoError(t, err)
	r, err := rewrite(t.Context(), source, description)
	require.NoError(t, err)
	return r.source
}

// codeOf returns where the code section begins.
func codeOf(t *testing.T, source []byte) int {
	t.Helper()
	description, err := inspectOwn(source)
	require.NoError(t, err)
	for _, s := range description.Sections {
		if s.ID == wasm.SectionCode {
			return s.Content
		}
	}
	t.Fatal("there is no code")
	return 0
}

func isValid(source []byte) bool {
	description, err := inspectOwn(source)
	if err != nil {
		return false
	}
	_, err = wasm.ValidateWithin(context.Background(), source, description, unbounded(), wasm.Features{})
	return err == nil
}

var errNoMore = errors.New("no more")

// interpret runs the start function and the exports of a finished module, for so long. WASI's
// functions do nothing, and successfully.
func interpret(ctx context.Context, source []byte, long time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCloseOnContextDone(true).WithMemoryLimitPages(64))
	defer r.Close(context.WithoutCancel(ctx))
	compiled, err := r.CompileModule(ctx, source)
	if err != nil {
		return err
	}
	if err := offerStubs(ctx, r, compiled.ImportedFunctions()); err != nil {
		return err
	}
	instance, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions())
	if err == nil {
		for _, name := range slices.Sorted(maps.Keys(compiled.ExportedFunctions())) {
			if function := instance.ExportedFunction(name); len(function.Definition().ParamTypes()) == 0 {
				_, failure := function.Call(ctx)
				err = errors.Join(err, failure)
			}
		}
	}
	return errors.Join(ctx.Err(), err)
}

// offerStubs provides a module's imports: a meter that is refilled twice, and otherwise functions that return zeros.
func offerStubs(ctx context.Context, r wazero.Runtime, imports []api.FunctionDefinition) error {
	refills := 0
	builders := map[string]wazero.HostModuleBuilder{}
	for _, imported := range imports {
		module, name, _ := imported.Import()
		if builders[module] == nil {
			builders[module] = r.NewHostModuleBuilder(module)
		}
		stub := func(_ context.Context, _ api.Module, stack []uint64) {
			if module != wasm.MeterModule {
				clear(stack)
				return
			}
			if refills++; refills > 2 {
				panic(errNoMore)
			}
			stack[0] = uint64(max(int64(stack[0]), 0) + 300_000)
		}
		builders[module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(stub), imported.ParamTypes(), imported.ResultTypes()).Export(name)
	}
	for _, builder := range builders {
		if _, err := builder.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ending tells apart how runs end.
func ending(end error) string {
	switch {
	case end == nil:
		return "return"
	case errors.Is(end, errNoMore):
		return "refill"
	default:
		return "trap"
	}
}
