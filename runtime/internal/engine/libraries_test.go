package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// link compiles a program with its libraries.
func link(t testing.TB, e *Engine, main program, libraries map[string]program) (*Module, error) {
	t.Helper()
	source := Source{Module: main.bytes(), Libraries: map[string][]byte{}}
	for name, library := range libraries {
		source.Libraries[name] = library.bytes()
	}
	return e.CompileIf(t.Context(), source, func(*wasm.Linked) error { return nil })
}

func linked(t testing.TB, e *Engine, main program, libraries map[string]program) *Module {
	t.Helper()
	module, err := link(t, e, main, libraries)
	require.NoError(t, err)
	return module
}

// said is a data segment at the start of a memory.
func said(text string) []wasm.Segment { return []wasm.Segment{{Bytes: []byte(text)}} }

// TestHostFunctionsWorkOnTheCallersMemory: a host function gets the memory of the module that called
// it, and the start functions of libraries run before that of the module, in order.
func TestHostFunctionsWorkOnTheCallersMemory(t *testing.T) {
	var heard []string
	e := newEngine(t, Options{}, func(_ context.Context, memory hostfuncs.Memory, _ []uint64) error {
		text, ok := memory.View(0, 4)
		if !ok {
			return fmt.Errorf("no memory")
		}
		heard = append(heard, string(text))
		return nil
	})
	speak := call(0)
	module := linked(t, e, program{importing: true, libraries: []string{"one", "two"}, body: join(call(2), speak, call(1)), data: said("main"), memory: 1},
		map[string]program{
			"one": {importing: true, libraries: []string{"two"}, body: join(speak, call(1)), data: said("one "), memory: 1},
			"two": {importing: true, body: speak, data: said("two "), memory: 1, start: true},
		})
	for range 3 {
		heard = nil
		_, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 3 * page})
		require.NoError(t, err)
		assert.Equal(t, []string{"two ", "two ", "main", "one ", "two "}, heard)
	}
	_, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 3*page - 1})
	require.ErrorIs(t, err, ErrMemory, "control: each has a page")
}

// bumper is a module that imports bump of testKernel from other modules, and exports it as these
// instructions. It has no memory.
func bumper(modules []string, body ...[]byte) []byte {
	imports := leb(len(modules))
	for _, module := range modules {
		imports = join(imports, name(module), name("bump"), []byte{0, 0})
	}
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 1, 0x7f), section(2, imports...), section(3, 1, 0),
		section(7, join([]byte{1}, name("bump"), []byte{0, byte(len(modules))})...), section(10, join([]byte{1}, function(nil, body...))...))
}

// TestLibrariesShareTheKernel: a module and its libraries have one kernel, which is reset with them.
func TestLibrariesShareTheKernel(t *testing.T) {
	main := bumper([]string{"library", "kernel"}, call(0), drop, call(1))
	for name, c := range map[string]struct {
		library []byte
		want    uint64
	}{
		"the library calls the kernel":            {bumper([]string{"kernel"}, call(0)), 2},
		"control: the library has its own memory": {testKernel().Source, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{Kernel: testKernel()}, nil)
			module, err := e.CompileIf(t.Context(), Source{Module: main, Libraries: map[string][]byte{"library": c.library}}, func(*wasm.Linked) error { return nil })
			require.NoError(t, err)
			require.Empty(t, module.NewInstances())
			for range 3 {
				var result uint64
				_, err = module.Run(t.Context(), Run{Function: "bump", MemoryLimit: 8 * page, Result: &result})
				require.NoError(t, err)
				assert.Equal(t, c.want, result)
			}
		})
	}
}

// TestAttackLibraries: a library's action ends as it would in the module itself, and the next run is fresh.
func TestAttackLibraries(t *testing.T) {
	grow := []byte{0x41, 1, 0x40, 0, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b} // memory.grow 1; trap if that fails
	for name, c := range map[string]struct {
		main, library program
		want          error
		reason        string
	}{
		"a trap":                       {program{body: call(0)}, program{body: divide}, ErrTrap, "integer divide by zero"},
		"an endless loop":              {program{body: call(0)}, program{body: forever}, ErrFuel, ""},
		"an endless loop at the start": {program{body: call(0)}, program{body: forever, start: true}, ErrFuel, ""},
		"a loop over calls":            {program{body: []byte{0x03, 0x40, 0x10, 0, 0x0c, 0, 0x0b}}, program{}, ErrFuel, ""},
		"endless recursion":            {program{body: call(0)}, program{body: recurse}, ErrTrap, stackOverflow},
		"memory of its own":            {program{body: call(0), memory: 1}, program{body: join(grow, grow, grow), memory: 1}, ErrTrap, "unreachable"},
		"memory beside the module's":   {program{body: join(grow, grow, call(0)), memory: 1}, program{body: grow, memory: 1}, ErrTrap, "unreachable"},
		"memory at the start":          {program{body: call(0), memory: 2}, program{memory: 3}, ErrMemory, "starts with"},
		"control":                      {program{body: join(grow, call(0)), memory: 1}, program{body: grow, memory: 1}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.main.libraries = []string{"library"}
			module := linked(t, newEngine(t, Options{}, nil), c.main, map[string]program{"library": c.library})
			for range 3 {
				used, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 4 * page, Fuel: 10_000_000})
				require.ErrorIs(t, err, c.want)
				if c.reason != "" {
					assert.ErrorContains(t, err, c.reason)
				}
				if failure, ok := errors.AsType[*Error](err); ok && failure.Trace != "" {
					assert.NotContains(t, failure.Trace, "$", "a number could be that of a function of another module")
				}
				assert.LessOrEqual(t, used.MemoryBytes, int64(4*page))
			}
		})
	}
}

// TestAttackNamesOfLibraries: no library replaces a module that the engine provides.
func TestAttackNamesOfLibraries(t *testing.T) {
	e := newEngine(t, Options{Kernel: testKernel()}, func(context.Context, hostfuncs.Memory, []uint64) error { return nil })
	for _, name := range []string{"test", "kernel", wasm.MeterModule, wasm.ForkModule} {
		_, err := link(t, e, program{}, map[string]program{name: {}})
		require.ErrorIs(t, err, ErrModule)
		assert.ErrorContains(t, err, fmt.Sprintf("a library cannot be named %q", name))
	}
	_, err := link(t, e, program{}, map[string]program{"test2": {}})
	require.NoError(t, err, "control")
}

// TestLibrariesThatCannotBeUsed: the error names the library.
func TestLibrariesThatCannotBeUsed(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	_, err := link(t, e, program{libraries: []string{"library"}, body: call(0)}, map[string]program{"library": {body: drop}})
	failure, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	assert.Equal(t, "library", failure.Library)
	require.ErrorIs(t, err, ErrModule)
	_, err = e.CompileIf(t.Context(), Source{Module: program{}.bytes(), Libraries: map[string][]byte{"library": []byte("no module")}}, func(*wasm.Linked) error { return nil })
	failure, ok = errors.AsType[*Error](err)
	require.True(t, ok)
	assert.Equal(t, "library", failure.Library)
	require.ErrorIs(t, err, wasm.ErrMalformed)
	_, err = linked(t, e, program{libraries: []string{"library"}}, map[string]program{"other": {}}).Run(t.Context(), Run{Function: "run", MemoryLimit: page})
	require.ErrorIs(t, err, ErrModule, "no library provides the import")
	_, err = link(t, e, program{}, map[string]program{"a": {}, "b": {}, "c": {}, "d": {}, "e": {}})
	assert.ErrorContains(t, err, "it has 5 libraries, the limit is 4")
	refusal := errors.New("of no use")
	_, err = e.CompileIf(t.Context(), Source{Module: program{}.bytes()}, func(*wasm.Linked) error { return refusal })
	require.ErrorIs(t, err, refusal)
}

// TestDigestsOfLinkedModules: a digest covers all modules and their names.
func TestDigestsOfLinkedModules(t *testing.T) {
	one, two := program{}.bytes(), program{filler: []byte{1}}.bytes()
	seen := map[Digest]bool{DigestOf(one): true}
	assert.Equal(t, DigestOf(one), Source{Module: one}.Digest())
	for _, source := range []Source{
		{one, map[string][]byte{"a": two}}, {one, map[string][]byte{"b": two}}, {two, map[string][]byte{"a": one}}, {one, map[string][]byte{"a": one}},
		{one, map[string][]byte{"a": one, "b": two}}, {one, map[string][]byte{"a": two, "b": one}},
	} {
		assert.False(t, seen[source.Digest()])
		seen[source.Digest()] = true
	}
}

// TestLinkedModulesAreReplaced: modules with equal main modules and other libraries are other modules, and when they
// are evicted, their resources are freed.
func TestLinkedModulesAreReplaced(t *testing.T) {
	e := newEngine(t, Options{ModuleBytes: 1}, nil)
	main := program{libraries: []string{"library"}, body: call(0)}
	for _, c := range []struct {
		library program
		want    error
	}{{program{}, nil}, {program{body: divide}, ErrTrap}, {program{}, nil}} {
		module := linked(t, e, main, map[string]program{"library": c.library})
		_, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: page})
		require.ErrorIs(t, err, c.want)
	}
	assert.Len(t, e.modules, 1)
}

// TestLibrariesOfStartedModules: copies of a started module have the libraries that its start left.
func TestLibrariesOfStartedModules(t *testing.T) {
	count := join([]byte{0x41, 16, 0x41, 16, 0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0}) // increments a word of memory
	var counted []byte
	e := newEngine(t, Options{}, func(_ context.Context, memory hostfuncs.Memory, _ []uint64) error {
		view, _ := memory.View(16, 1)
		counted = append(counted, view[0])
		return nil
	})
	module := linked(t, e, program{libraries: []string{"library"}, body: join(call(0))},
		map[string]program{"library": {importing: true, body: join(count, call(0)), memory: 1, start: true}})
	start := func(initialize Initializer) (*Program, error) {
		return module.Start(t.Context(), Start{
			Context: func(ctx context.Context) context.Context { return ctx }, MemoryLimit: 8 * page, Timeout: time.Minute, Fuel: 1 << 20,
			Initialize: []Initializer{initialize},
		})
	}
	for _, initialize := range []Initializer{{Function: "run"}, {Library: "library", Function: "run"}} {
		program, err := start(initialize)
		require.NoError(t, err)
		counted = nil
		for range 5 { // two instances were started, and the others are copies
			if i := e.idle.take(program.key()); i != nil {
				defer i.close(t.Context())
			}
			_, err := program.Run(t.Context(), Run{Function: "run"})
			require.NoError(t, err)
		}
		assert.Equal(t, []byte{3, 3, 3, 3, 3}, counted)
		counted = nil
		_, err = module.Run(t.Context(), Run{Initialize: []Initializer{initialize}, Function: "run", MemoryLimit: 8 * page})
		require.NoError(t, err)
		assert.Equal(t, []byte{1, 2, 3}, counted, "without a program: the start function, this one, and run")
	}
	for _, unknown := range []Initializer{{Library: "other", Function: "run"}, {Library: "library", Function: "other"}} {
		_, err := start(unknown)
		require.ErrorIs(t, err, ErrModule)
	}
}
