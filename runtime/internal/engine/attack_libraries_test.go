package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// recursing is a module whose start function calls itself until it has been called n times.
func recursing(n int) program {
	counted := []byte{0x41, 0, 0x28, 2, 0} // i32.const 0, i32.load
	return program{memory: 1, start: true, body: join(
		[]byte{0x41, 0}, counted, []byte{0x41, 1, 0x6a, 0x36, 2, 0}, // one more
		counted, []byte{0x41}, sleb(int64(n)), []byte{0x49, 0x04, 0x40, 0x10, 0, 0x0b}, // if fewer than n: call itself
	)}
}

func compileLinked(t *testing.T, e *Engine, source Source) *Module {
	t.Helper()
	module, err := e.CompileIf(t.Context(), source, func(*wasm.Linked) error { return nil })
	require.NoError(t, err)
	return module
}

// TestAttackStacksOfStartFunctions: a start function that recurses deeply, of a module or of a library, leaves no large
// stack, neither to the rest of its run, which has its own stack, nor to an idle instance. The control is one that does
// not.
func TestAttackStacksOfStartFunctions(t *testing.T) {
	for _, calls := range []int{10, 30_000} {
		start := recursing(calls)
		caller := program{memory: -1, libraries: []string{"library"}}.bytes()
		for what, source := range map[string]Source{
			"module":  {Module: start.bytes()},
			"library": {Module: caller, Libraries: map[string][]byte{"library": start.bytes()}},
		} {
			e := newEngine(t, Options{}, nil)
			module := compileLinked(t, e, source)
			for range 3 {
				mustRun(t, module, Run{Function: "run", MemoryLimit: mebibyte})
			}
			require.NotNil(t, e.idle.newest, "%s, %d calls", what, calls)
			i := e.idle.newest
			deep := i
			if what == "library" {
				deep = i.dependencies[0]
			}
			held, known := i.held()
			assert.True(t, known)
			assert.GreaterOrEqual(t, held, int64(deep.start.stack.Len()), "the stack counts")
			assert.LessOrEqual(t, deep.start.stack.Len(), mostStartStack)
		}
	}
}

// TestAttackTextOfADigest: the text that is hashed for the digest of a module with libraries is refused as a module,
// even while the engine has a module with that digest.
func TestAttackTextOfADigest(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	source := Source{
		Module:    program{memory: -1, libraries: []string{"library"}}.bytes(),
		Libraries: map[string][]byte{"library": program{memory: -1}.bytes()},
	}
	text := fmt.Appendf(nil, "caisson-linked/v1\n%s\n%q %s\n", DigestOf(source.Module), "library", DigestOf(source.Libraries["library"]))
	require.Equal(t, source.Digest(), DigestOf(text))
	for range 2 {
		_, err := e.Compile(t.Context(), text)
		require.ErrorIs(t, err, ErrModule)
		require.ErrorIs(t, err, wasm.ErrMalformed)
		mustRun(t, compileLinked(t, e, source), Run{Function: "run", MemoryLimit: mebibyte}) // control
	}
}

// TestAttackReadPassedOn: a library that passes on the host's fd_read leads it to the memory of the module that calls
// it, whether or not the library is a command, in which reads are replaced.
func TestAttackReadPassedOn(t *testing.T) {
	i32 := hostfuncs.I32
	var seen []byte
	read := hostfuncs.Function{
		Module: "wasi_snapshot_preview1", Name: "fd_read", Params: []hostfuncs.ValueType{i32, i32, i32, i32}, Results: []hostfuncs.ValueType{i32},
		Call: func(_ context.Context, memory hostfuncs.Memory, _ []uint64) error {
			view, _ := memory.View(0, 1)
			seen = append(seen, view...)
			return nil
		},
	}
	of := drawnType{[]byte{typeI32, typeI32, typeI32, typeI32}, []byte{typeI32}}
	types := section(1, join([]byte{2}, drawnType{}.bytes(), of.bytes())...)
	// Each has function 0, which it imports and exports as "read", and function 1, which calls it.
	module := func(from, imported, calls, content string) []byte {
		return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, types,
			section(2, join([]byte{1}, name(from), name(imported), []byte{0, 1})...), section(3, 1, 0), section(5, 1, 0, 1),
			section(7, join([]byte{2}, name("read"), []byte{0, 0}, name(calls), []byte{0, 1})...),
			section(10, join([]byte{1}, function(nil, ([]byte{0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a})))...),
			section(11, join([]byte{1, 0, 0x41, 0, 0x0b}, name(content))...))
	}
	for _, calls := range []string{"_start", "other"} { // the control is the second
		e := newEngine(t, Options{Functions: []hostfuncs.Function{read}}, nil)
		m := compileLinked(t, e, Source{
			Module:    module("library", "read", "run", "m"),
			Libraries: map[string][]byte{"library": module("wasi_snapshot_preview1", "fd_read", calls, "l")},
		})
		seen = nil
		mustRun(t, m, Run{Initialize: []Initializer{{Library: "library", Function: calls}}, Function: "run", MemoryLimit: mebibyte})
		assert.Equal(t, "lm", string(seen), "%s: the library's own call, and then the module's", calls)
	}
}

// TestAttackChargesOfLibraries: a library that has the host do work for which it is charged, again and again, ends
// where the module itself would.
func TestAttackChargesOfLibraries(t *testing.T) {
	calls := 0
	e := newEngine(t, Options{}, func(ctx context.Context, _ hostfuncs.Memory, _ []uint64) error {
		calls++
		BudgetOf(ctx).Charge(10 * mebibyte)
		return nil
	})
	working := program{memory: -1, importing: true, body: []byte{0x03, 0x40, 0x10, 0, 0x0c, 0, 0x0b}} // loop, call 0, br 0
	caller := program{memory: -1, libraries: []string{"library"}, body: []byte{0x10, 0}}
	for what, source := range map[string]Source{
		"module":  {Module: working.bytes()}, // the control
		"library": {Module: caller.bytes(), Libraries: map[string][]byte{"library": working.bytes()}},
	} {
		calls = 0
		usage, err := compileLinked(t, e, source).Run(t.Context(), Run{Function: "run", MemoryLimit: mebibyte, Fuel: 100 * mebibyte})
		require.ErrorIs(t, err, ErrFuel)
		assert.Equal(t, 10, calls, what)
		assert.EqualValues(t, 100*mebibyte, usage.Charged, what)
	}
}
