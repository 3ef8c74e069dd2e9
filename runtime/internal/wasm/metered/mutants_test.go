package metered_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

var mutants = flag.Int("mutants", 5_000, "how many modules with a changed byte are verified and, where that succeeds, run")

// TestMutantsThatAreProvedEnd changes bytes of finished modules. Where the result is valid and
// Verify accepts it, running it shows whether Verify is right: it comes to its end or to the
// third refill. The interpreter runs it, which can be stopped whatever it executes.
func TestMutantsThatAreProvedEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	names := slices.Sorted(maps.Keys(known))
	ran, refused, ends := 0, 0, map[string]int{}
	for n := range *mutants {
		name := names[n%len(names)]
		source, ok := rewritten(known[name])
		require.True(t, ok, name)
		before := slices.Clone(source)
		for range 1 + random.IntN(2) {
			source[len(source)/4+random.IntN(3*len(source)/4)] = byte(random.IntN(256))
		}
		if !valid(source) {
			continue
		}
		if metered.Verify(source) != nil {
			refused++
			continue
		}
		ran++
		end := execute(t.Context(), source, 2*time.Second)
		require.NotErrorIs(t, end, context.DeadlineExceeded, "%s: from %x to %x", name, before, source)
		ends[kind(end)]++
	}
	t.Logf("%d refused, %d ran: %v", refused, ran, ends)
	assert.Greater(t, refused, *mutants/50)
	assert.Greater(t, ran, *mutants/50)
	assert.Greater(t, ends["refill"], *mutants/200)
}

// TestMutantsWithoutProof is the control: of what Verify refuses, some does not end.
func TestMutantsWithoutProof(t *testing.T) {
	endless := 0
	for name, source := range known {
		done, ok := rewritten(source)
		require.True(t, ok, name)
		// i32.lt_s, with which counters are compared, becomes i32.ge_s.
		for at, b := range done {
			mutant := slices.Clone(done)
			if mutant[at] = 0x4e; b != 0x48 || !valid(mutant) {
				continue
			}
			if err := execute(t.Context(), mutant, 300*time.Millisecond); errors.Is(err, context.DeadlineExceeded) {
				assert.Error(t, metered.Verify(mutant), name)
				endless++
			}
			break
		}
	}
	assert.Positive(t, endless)
}

func valid(source []byte) bool {
	m, err := wasm.Inspect(source)
	if err != nil {
		return false
	}
	_, err = wasm.Validate(source, m)
	return err == nil
}

var errNoMore = errors.New("no more")

// execute runs the start function and the exports of a finished module, for so long.
func execute(ctx context.Context, source []byte, long time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCloseOnContextDone(true).WithMemoryLimitPages(64))
	defer r.Close(context.WithoutCancel(ctx))
	refills := 0
	refill := func(counter int64) int64 {
		if refills++; refills > 2 {
			panic(errNoMore)
		}
		return max(counter, 0) + 300_000
	}
	offered := r.NewHostModuleBuilder("caisson:meter@1").NewFunctionBuilder().WithFunc(refill).Export("refill")
	_, err := offered.Instantiate(ctx)
	for name, functions := range map[string]map[string]any{
		"caisson:fork@1":         {"reached": func(uint32) uint32 { return 0 }, "resume": func() uint32 { return 0 }},
		"wasi_snapshot_preview1": {"fd_read": func(_, _, _, _ uint32) uint32 { return 0 }, "sched_yield": func() uint32 { return 0 }},
	} {
		builder := r.NewHostModuleBuilder(name)
		for export, f := range functions {
			builder = builder.NewFunctionBuilder().WithFunc(f).Export(export)
		}
		_, failure := builder.Instantiate(ctx)
		err = errors.Join(err, failure)
	}
	if err != nil {
		return err
	}
	compiled, err := r.CompileModule(ctx, source)
	if err != nil {
		return err
	}
	instance, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(compiled.ExportedFunctions())) {
		err = errors.Join(err, run(ctx, instance.ExportedFunction(name)))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func run(ctx context.Context, function api.Function) error {
	if len(function.Definition().ParamTypes()) > 0 {
		return nil
	}
	_, err := function.Call(ctx)
	return err
}

// kind tells apart how runs end.
func kind(end error) string {
	switch {
	case end == nil:
		return "return"
	case errors.Is(end, errNoMore):
		return "refill"
	default:
		return "trap"
	}
}

// TestChargesAreExact: a unit more or less anywhere is noticed.
func TestChargesAreExact(t *testing.T) {
	changed := 0
	for name, source := range known {
		if name == unreached {
			continue // its charges are never executed
		}
		done, ok := rewritten(source)
		require.True(t, ok, name)
		for at := range len(done) - 3 {
			global := done[at] == 0x42 && done[at+2] == 0x7d
			own := done[at] == 0x41 && done[at+2] == 0x6a && (done[at+3] == 0x21 && done[at+4] != 0 || done[at+3] == 0xad)
			if units := done[at+1]; !global && !own || units == 0 || units > 60 {
				continue
			}
			changed++
			for _, change := range []byte{1, 0xff} {
				mutant := slices.Clone(done)
				mutant[at+1] += change
				assert.Error(t, metered.Verify(mutant), fmt.Sprintf("%s: %d of %d", name, mutant[at+1], at))
			}
		}
	}
	assert.Greater(t, changed, 30)
}

// FuzzVerify: whatever the bytes, it returns. Where they are accepted and valid, they end.
func FuzzVerify(f *testing.F) {
	for _, source := range known {
		if done, ok := rewritten(source); ok {
			f.Add(done)
		}
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if metered.Verify(source) == nil && valid(source) {
			require.NotErrorIs(t, execute(t.Context(), source, 2*time.Second), context.DeadlineExceeded)
		}
	})
}
