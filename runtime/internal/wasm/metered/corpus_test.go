package metered_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

var allPasses = wasm.Passes{Meter: true, Depth: true, Globals: true, Data: true, Fork: true}

// rewritten returns the module that the passes produce, or false if they refuse it.
func rewritten(source []byte) ([]byte, bool) { return rewrittenBy(source, allPasses) }

func rewrittenBy(source []byte, passes wasm.Passes) ([]byte, bool) {
	m, err := wasm.Inspect(source)
	if err != nil {
		return nil, false
	}
	analysis, err := wasm.Validate(source, m)
	if err != nil {
		return nil, false
	}
	done, err := wasm.Rewrite(context.Background(), source, analysis, passes)
	if err != nil {
		return nil, false
	}
	return done.Source, true
}

// corpus is modules as users have them, and as the specification tests them: those of
// compilers to C, Rust and others that are at hand without one.
func corpus(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	require.NoError(t, err)
	dir, found := strings.TrimSpace(string(out)), map[string][]byte{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".wasm" {
			found[name], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		}
		return err
	}))
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		for form, read := range map[string]func() ([]byte, error){
			"kernels": func() ([]byte, error) { return guests.Kernels(t.Context(), language, "") },
			"command": func() ([]byte, error) { return guests.Command(t.Context(), language, "") },
			"plugin":  func() ([]byte, error) { return guests.Plugin(t.Context(), language, "") },
		} {
			found[string(language)+" "+form], err = read()
			require.NoError(t, err)
		}
	}
	for name, source := range known {
		found[name] = source
	}
	return found
}

// either is an if with two arms.
func either(then, other []byte) []byte {
	return slices.Concat([]byte{0x20, 0, 0x04, 0x40}, then, []byte{0x05}, other, []byte{0x0b})
}

// known are shapes of control flow that came by when passes were wrong, and one of each
// operation that takes time by its length.
var known = map[string][]byte{
	// A call, or a read, in front of a loop that does nothing.
	"endless behind a call":           program(call(1), loop(br(0))),
	"endless behind a read":           program(store(0, 16), store(4, 99), read(), []byte{0x03, 0x40, 0x20, 0, 0x41, 1, 0x6a, 0x21, 0}, br(0), []byte{0x0b}),
	"do while behind a read":          program(store(0, 16), store(4, 99), read(), loop([]byte{0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41, 1, 0x72}, brIf(0))),
	"endless as a start function":     starting(program(call(1), loop(br(0)))),
	"endless with a way out":          program(loop([]byte{0x20, 0}, brIf(1), br(0))),
	"endless through a table":         program(loop([]byte{0x20, 0, 0x0e, 1, 0, 0})),
	"endless around a call":           program(loop(call(1), br(0))),
	"endless around a call in tables": program(loop([]byte{0x41, 0, 0x11, 0, 0}, br(0))),
	"a branch alone in an arm":        program(block([]byte{0x20, 0, 0x04, 0x40}, br(1), []byte{0x0b}), block([]byte{0x20, 0, 0x04, 0x40, 0x01}, br(1), []byte{0x0b})),
	"a return alone in an arm":        program([]byte{0x20, 0, 0x04, 0x40, 0x0f, 0x0b}, loop([]byte{0x20, 0, 0x04, 0x40, 0x0f, 0x0b})),
	"nops":                            program(loop([]byte{0x01, 0x20, 0, 0x01}, brIf(0))),
	"a table that leads ahead": program([]byte{0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b, 0x41, 1, 0x21, 0}, br(1), []byte{0x0b},
		[]byte{0x41, 0, 0x21, 0}, br(0), []byte{0x0b}),
	"a table that leads ahead, and a call": program(call(1), []byte{0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b, 0x41, 1, 0x21, 0}, br(1), []byte{0x0b},
		[]byte{0x41, 0, 0x21, 0}, br(0), []byte{0x0b}),
	"a loop of two rounds in a loop":                  program(loop([]byte{0x41, 0, 0x21, 0}, loop(block([]byte{0x20, 0}, brIf(0), []byte{0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41, 2, 0x48}, brIf(1))), br(0))),
	"memory.fill and memory.copy":                     program([]byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0}),
	"an arm that costs more, behind the entry's test": program(either([]byte{0x20, 0, 0x1a}, slices.Repeat([]byte{0x20, 0, 0x1a}, 2)), call(1)),
	"an arm that costs more, behind an operation's":   program([]byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0}, either([]byte{0x20, 0, 0x1a}, slices.Repeat([]byte{0x20, 0, 0x1a}, 2))),
	"an arm of an arm that costs more": program(either(slices.Repeat([]byte{0x20, 0, 0x1a}, 5),
		either([]byte{0x20, 0, 0x1a}, slices.Repeat([]byte{0x20, 0, 0x1a}, 3))), call(1)),
	"a test without a charge":   program(slices.Repeat([]byte{0x20, 0, 0x04, 0x40, 0x41, 0, 0x40, 0, 0x1a, 0x0b}, 9)),
	"memory.grow":               program([]byte{0x41, 0, 0x40, 0, 0x1a}),
	"table.grow, fill and copy": program([]byte{0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a, 0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 0}),
	"a long body of bulk operations": program(slices.Repeat([]byte{0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0,
		0x41, 0, 0x40, 0, 0x1a, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0, 0xd2, 2, 0x1a, 0x10, 1, 0x1a}, 5000)),
	"a long loop of bulk operations": program(loop(slices.Repeat([]byte{0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0,
		0x41, 0, 0x40, 0, 0x1a, 0xd2, 2, 0x1a, 0x10, 1, 0x1a}, 5000), br(0))),
	"very many leaves in a row":                                  module(slices.Repeat(call(3), 2000), slices.Repeat([]byte{0x20, 0, 0x21, 0}, 30)),
	"a very long body":                                           program(slices.Repeat([]byte{0x20, 0, 0x1a}, 50_000)),
	"a very long body of conditions":                             program(slices.Repeat(slices.Concat([]byte{0x20, 0, 0x04, 0x40, 0x20, 0, 0x1a, 0x0b}, slices.Repeat([]byte{0x20, 0, 0x1a}, 10)), 5000)),
	"a very long body in a loop":                                 program(loop(slices.Repeat(slices.Concat([]byte{0x20, 0, 0x04, 0x40, 0x20, 0, 0x1a, 0x0b}, slices.Repeat([]byte{0x20, 0, 0x1a}, 10)), 5000), br(0))),
	"a long body of conditions":                                  program(slices.Repeat([]byte{0x20, 0, 0x04, 0x40, 0x20, 0, 0x1a, 0x0b}, 5000)),
	"a way back that is never taken":                             program(loop([]byte{0x20, 0, 0x1a}, loop([]byte{0x20, 0, 0x1a}, br(1), block(br(0)), br(0)))),
	unreached:                                                    program(br(0), loop([]byte{0x41, 0, 0x04, 0x40, 0x0b, 0x41, 0}, brIf(0), []byte{0x41, 0, 0x04, 0x40, 0x0b}, br(0))),
	"recursion":                                                  program(call(2)),
	"recursion with leaves on the way back":                      module(slices.Concat(call(2), slices.Repeat(call(3), 60)), slices.Repeat([]byte{0x20, 0, 0x21, 0}, 30)),
	"recursion with work on the way back":                        program(call(2), slices.Repeat([]byte{0x20, 0, 0x21, 0}, 30)),
	"recursion with a return on the way back":                    program(call(2), []byte{0x20, 0, 0x0d, 0, 0x20, 0, 0x1a, 0x0f}),
	"recursion with work in between":                             program(call(2), slices.Repeat([]byte{0x20, 0, 0x21, 0}, 30), call(2)),
	"recursion of two functions":                                 module(slices.Concat(call(3), []byte{0x20, 0, 0x21, 0}), slices.Concat(call(2), []byte{0x20, 0, 0x21, 0})),
	"recursion through a table":                                  program([]byte{0x41, 0, 0x11, 0, 0, 0x20, 0, 0x21, 0}),
	"recursion with a loop on the way back":                      program(call(2), loop([]byte{0x20, 0}, brIf(0))),
	"recursion with a long operation on the way back":            program(call(2), []byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0}),
	"a chain of functions that work on the way back":             module(slices.Concat(call(3), slices.Repeat([]byte{0x20, 0, 0x21, 0}, 500)), slices.Concat(call(4), slices.Repeat([]byte{0x20, 0, 0x21, 0}, 500)), slices.Concat(call(5), slices.Repeat([]byte{0x20, 0, 0x21, 0}, 500)), slices.Repeat([]byte{0x20, 0, 0x21, 0}, 2040)),
	"recursion in a loop":                                        program(loop(call(2), br(0))),
	"a long body without loops":                                  program(slices.Repeat([]byte{0x20, 0, 0x21, 0}, 40)),
	"a long function that calls none":                            module(nil, slices.Repeat([]byte{0x20, 0, 0x21, 0}, 40)),
	"a short function that does not test, and one that calls it": module([]byte{0x03, 0x40, 0x10, 3, 0x0c, 0, 0x0b}, []byte{0x20, 0, 0x1a}),
}

const unreached = "a loop that is never reached"

// TestPassesAreProved: the verifier accepts the output of the passes for each module.
func TestPassesAreProved(t *testing.T) {
	proved := 0
	for name, source := range corpus(t) {
		done, ok := rewritten(source)
		if !ok {
			assert.NotContains(t, known, name, "the passes refuse it")
			continue
		}
		proved++
		assert.NoError(t, metered.Verify(t.Context(), done), name)
		linked := allPasses
		linked.Linked = true
		done, ok = rewrittenBy(source, linked)
		require.True(t, ok)
		assert.NoError(t, metered.Verify(t.Context(), done), "%s with another's counter", name)
	}
	t.Logf("%d modules", proved)
	assert.Greater(t, proved, 2500)
}

// TestWhatIsNotMeteredIsRefused: the same modules without the passes.
func TestWhatIsNotMeteredIsRefused(t *testing.T) {
	for name, source := range known {
		err := metered.Verify(t.Context(), source)
		require.ErrorIs(t, err, metered.ErrUnproved, name)
		assert.ErrorContains(t, err, "there is no meter")
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
		if len(done) > 4096 {
			continue // too many to try
		}
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
				assert.Error(t, metered.Verify(t.Context(), mutant), fmt.Sprintf("%s: %d of %d", name, mutant[at+1], at))
			}
		}
	}
	assert.Greater(t, changed, 30)
}

// FuzzVerify: whatever the bytes, it returns.
func FuzzVerify(f *testing.F) {
	for _, source := range known {
		if done, ok := rewritten(source); ok {
			f.Add(done)
		}
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if err := metered.Verify(t.Context(), source); err != nil {
			require.ErrorIs(t, err, metered.ErrUnproved)
		}
	})
}

// BenchmarkVerify measures the time that verification adds to the compilation of a compiler's module.
func BenchmarkVerify(b *testing.B) {
	source, err := guests.Kernels(b.Context(), guests.Go, b.TempDir())
	require.NoError(b, err)
	done, ok := rewritten(source)
	require.True(b, ok)
	b.SetBytes(int64(len(done)))
	for b.Loop() {
		require.NoError(b, metered.Verify(context.Background(), done))
	}
}

// Small modules, assembled by hand. Function 0 is WASI's fd_read, function 1 its sched_yield,
// function 2 is _start, which has a local of type i32, as all that follow. A table holds
// function 2.

func program(code ...[]byte) []byte { return module(slices.Concat(code...)) }

// starting makes of a module that program made one whose program is a start function.
func starting(source []byte) []byte {
	at := bytes.Index(source, exports)
	return slices.Concat(source[:at], exportsMemory, section(8, []byte{2}), source[at+len(exports):])
}

var (
	exports       = section(7, vector(slices.Concat(text("_start"), []byte{0, 2}), slices.Concat(text("memory"), []byte{2, 0})))
	exportsMemory = section(7, vector(slices.Concat(text("memory"), []byte{2, 0})))
)

func module(bodies ...[]byte) []byte {
	functions, code := make([][]byte, len(bodies)), make([][]byte, len(bodies))
	for n, instructions := range bodies {
		body := slices.Concat([]byte{1, 1, 0x7f}, instructions, []byte{0x0b})
		functions[n], code[n] = []byte{0}, append(unsigned(len(body)), body...)
	}
	wasi := text("wasi_snapshot_preview1")
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vector([]byte{0x60, 0, 0}, []byte{0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}, []byte{0x60, 0, 1, 0x7f})),
		section(2, vector(slices.Concat(wasi, text("fd_read"), []byte{0, 1}), slices.Concat(wasi, text("sched_yield"), []byte{0, 2}))),
		section(3, vector(functions...)), section(4, vector([]byte{0x70, 0, 1})), section(5, vector([]byte{0, 1})), exports,
		section(9, vector([]byte{0, 0x41, 0, 0x0b, 1, 2})), section(10, vector(code...)))
}

func unsigned(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func text(s string) []byte { return append(unsigned(len(s)), s...) }

func section(id byte, content ...[]byte) []byte {
	joined := slices.Concat(content...)
	return slices.Concat([]byte{id}, unsigned(len(joined)), joined)
}

func vector(elements ...[]byte) []byte {
	return append(unsigned(len(elements)), slices.Concat(elements...)...)
}

func br(label byte) []byte   { return []byte{0x0c, label} }
func brIf(label byte) []byte { return []byte{0x0d, label} }

// call calls a function. sched_yield's result is dropped.
func call(function byte) []byte {
	if function == 1 {
		return []byte{0x10, 1, 0x1a}
	}
	return []byte{0x10, function}
}

// store is i32.store of small numbers.
func store(address, value byte) []byte { return []byte{0x41, address, 0x41, value & 0x3f, 0x36, 2, 0} }

// read reads standard input to where the vector at 0 says.
func read() []byte { return []byte{0x41, 0, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 0, 0x1a} }

func loop(code ...[]byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, slices.Concat(code...), []byte{0x0b})
}

func block(code ...[]byte) []byte {
	return slices.Concat([]byte{0x02, 0x40}, slices.Concat(code...), []byte{0x0b})
}
