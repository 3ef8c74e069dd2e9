package engine

import (
	"context"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// many is a module of many functions of which the first traps.
func many(functions int) []byte {
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, join(leb(functions+1), make([]byte, functions+1))...),
		section(7, join([]byte{1}, name("run"), []byte{0, 0})...),
		section(10, join(leb(functions+1), function(nil, unreachable), manyEmpty(functions))...))
}

func manyEmpty(functions int) []byte {
	var bodies []byte
	for range functions {
		bodies = append(bodies, function(nil)...)
	}
	return bodies
}

// allocatedBy returns the number of bytes that do allocates in the Go heap.
func allocatedBy(do func()) int64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	do()
	goruntime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestAttackFirstTrap: the first call of a module that traps describes none of its functions, which takes time with
// functions × exports and memory that no limit of the call counts. That is done when the module is compiled, or read
// from the cache. The control is plain wazero.
func TestAttackFirstTrap(t *testing.T) {
	const functions, each = 20_000, 100 // bytes at least for the description of each
	source := many(functions)
	cache := filepath.Join(t.TempDir(), "cache")
	for _, options := range []Options{{}, {CacheDir: cache}, {CacheDir: cache}} {
		module := compileSource(t, newEngine(t, options, nil), source)
		var failure error
		spent := allocatedBy(func() { _, failure = module.Run(t.Context(), plain) })
		require.ErrorIs(t, failure, ErrTrap)
		assert.Less(t, spent, int64(functions*each/2))
	}

	r := wazero.NewRuntimeWithConfig(t.Context(), runtimeConfig())
	defer r.Close(context.WithoutCancel(t.Context()))
	instance, err := r.Instantiate(t.Context(), source)
	require.NoError(t, err)
	run := instance.ExportedFunction("run")
	for n, enough := range []func(int64) bool{
		func(spent int64) bool { return spent > functions*each }, func(spent int64) bool { return spent < functions*each/2 },
	} {
		var failure error
		spent := allocatedBy(func() { _, failure = run.Call(t.Context()) })
		require.Error(t, failure)
		assert.True(t, enough(spent), "control: %d bytes in call %d", spent, n)
	}
}

// TestAttackManyExports: no module, compiled anywhere, has so many functions and exports that describing them takes
// more than a second.
func TestAttackManyExports(t *testing.T) {
	const functions, exports = 150_000, 7_000
	source := func(functions int) []byte {
		names := join(leb(exports+1), name("run"), []byte{0, 0})
		for i := range exports {
			names = append(names, join(name(string([]byte{'a' + byte(i/1000), 'a' + byte(i/100%10), 'a' + byte(i/10%10), 'a' + byte(i%10)})), []byte{0, 0})...)
		}
		return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, join(leb(functions), make([]byte, functions))...),
			section(7, names...), section(10, join(leb(functions), manyEmpty(functions))...))
	}
	attack := source(functions)
	for _, options := range []Options{{}, {Compiler: child(t)}, {Trusted: []Digest{DigestOf(attack)}}} {
		e := newEngine(t, options, nil)
		_, err := e.Compile(t.Context(), attack)
		require.ErrorIs(t, err, wasm.ErrLimit)
		require.ErrorContains(t, err, "150000 functions × 7001 exports and globals")
	}
	_, err := newEngine(t, Options{}, nil).Compile(t.Context(), source(functions/100))
	require.NoError(t, err, "control")
}

// endsLater is a context that is found to have ended when it is looked at for the last of so many times.
type endsLater struct {
	context.Context
	looks *int
}

func (c endsLater) Err() error {
	if *c.looks--; *c.looks <= 0 {
		return context.Canceled
	}
	return nil
}

// TestAttackInstancesOfEndedCalls: a call that has ended makes no more instances, of its module and its libraries, and
// does not begin. Each of them may take tens of milliseconds. The control is a call that has not ended.
func TestAttackInstancesOfEndedCalls(t *testing.T) {
	called := 0
	e := newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error { called++; return nil })
	source := Source{Module: program{memory: 1, importing: true, libraries: []string{"a", "b"}, body: callImport}.bytes(), Libraries: map[string][]byte{
		"a": program{memory: 1}.bytes(), "b": program{memory: 1, filler: []byte("another")}.bytes()}}
	module := compileLinked(t, e, source)
	images := func() (n int) { // each module makes one when it is first instantiated
		for _, m := range []*Module{module, module.dependencies[0].module, module.dependencies[1].module} {
			if m.image != nil {
				n++
			}
		}
		return n
	}
	for looks := 1; looks <= 3; looks++ {
		left := looks
		_, err := module.Run(endsLater{t.Context(), &left}, plain)
		require.ErrorIs(t, err, context.Canceled)
		assert.Less(t, images(), looks, "looks: %d", looks)
	}
	assert.Zero(t, called)
	mustRun(t, module, plain)
	assert.Equal(t, 3, images(), "control")
	assert.Equal(t, 1, called, "control")

	require.Equal(t, 1, e.idle.count())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := module.Run(ended, plain)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, called, "an instance that is there is not used either")
	assert.Equal(t, 1, e.idle.count(), "and is kept")
}

// importingOften imports a function n times, and exports the last one, or a function that does nothing, as "run".
func importingOften(from, function string, n int, passes bool) []byte {
	var imports []byte
	for range n {
		imports = append(imports, join(name(from), name(function), []byte{0, 0})...)
	}
	exported := n
	if passes {
		exported--
	}
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(2, join(leb(n), imports)...), section(3, 1, 0),
		section(7, join([]byte{1}, name("run"), []byte{0}, leb(exported))...), section(10, join([]byte{1}, manyEmpty(1))...))
}

// TestAttackReexports: imports of functions that a library only passes on are bounded, since wazero looks through the
// library's imports for each of them when it makes an instance. The controls are functions of the library, and few
// imports.
func TestAttackReexports(t *testing.T) {
	for _, c := range []struct {
		imports int
		passes  bool
		refused bool
	}{{1_001, true, true}, {1_001, false, false}, {100, true, false}} {
		e := newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error { return nil })
		_, err := e.CompileIf(t.Context(), Source{Module: importingOften("library", "run", c.imports, false),
			Libraries: map[string][]byte{"library": importingOften("test", "host", c.imports, c.passes)}}, func(*wasm.Linked) error { return nil })
		if !c.refused {
			require.NoError(t, err, "control")
			continue
		}
		require.ErrorIs(t, err, wasm.ErrLink)
		require.ErrorContains(t, err, "which imports it itself")
	}
}

// TestAttackManyInstancesAtOnce: only as many instances of modules with many references are made at a time as there are
// processors. Calls whose deadline is over do not wait for them. The controls are a call with time, and a small module.
func TestAttackManyInstancesAtOnce(t *testing.T) {
	const references = manyItems
	e := newEngine(t, Options{}, nil)
	large := program{memory: 1, tables: join([]byte{1, 0x70, 0}, leb(16*references))}
	heavy, light := compile(t, e, large), compile(t, e, program{memory: 1})
	for range cap(e.assembling) {
		e.assembling <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := heavy.Run(ctx, plain)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	mustRun(t, light, plain)
	ended := make(chan error, 1)
	go func() {
		_, err := heavy.Run(t.Context(), plain)
		ended <- err
	}()
	for range cap(e.assembling) {
		<-e.assembling
	}
	require.NoError(t, <-ended)
	assert.Empty(t, e.assembling)

	elements := wasm.Section{ID: wasm.SectionElement, Content: 10, End: 1010}
	assert.Equal(t, 1003, itemsOf(&wasm.Module{Sections: []wasm.Section{elements}, Imports: make([]wasm.Import, 1), Globals: make([]wasm.Global, 2)}))
}
