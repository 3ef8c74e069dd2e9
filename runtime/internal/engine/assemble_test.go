package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"reflect"

	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// program is a small module, assembled by hand: one function "run" without parameters and results, over an optional
// memory and one imported function, "test.host".
type program struct {
	body      []byte   // instructions, without the final end
	memory    int      // initial pages; negative for no memory
	importing bool     // function 0 is the import
	libraries []string // modules whose "run" is imported, as the next functions; the program's own comes after them
	start     bool     // "run" is the start function too
	tables    []byte   // the table section's contents
	locals    byte     // the number of locals of "run", of type i32
	copies    int      // the number of further functions with the same body
	filler    []byte   // a custom section's contents, to make digests differ
	data      []wasm.Segment
}

func section(id byte, contents ...byte) []byte {
	return append(append([]byte{id}, leb(len(contents))...), contents...)
}

func leb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func name(s string) []byte { return append(leb(len(s)), s...) }

func join(parts ...[]byte) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// function is an entry of the code section; nil means no locals.
func function(locals []byte, code ...[]byte) []byte {
	if locals == nil {
		locals = []byte{0}
	}
	whole := join(locals, join(code...), []byte{0x0b})
	return join(leb(len(whole)), whole)
}

func (p program) bytes() []byte {
	module := [][]byte{{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0)}
	var imports [][]byte
	if p.importing {
		imports = append(imports, join(name("test"), name("host"), []byte{0, 0}))
	}
	for _, library := range p.libraries {
		imports = append(imports, join(name(library), name("run"), []byte{0, 0}))
	}
	run := byte(len(imports))
	if run > 0 {
		module = append(module, section(2, join([]byte{run}, join(imports...))...))
	}
	functions := 1 + p.copies
	module = append(module, section(3, join(leb(functions), make([]byte, functions))...))
	if p.tables != nil {
		module = append(module, section(4, p.tables...))
	}
	if p.memory >= 0 {
		module = append(module, section(5, join([]byte{1, 0}, leb(p.memory))...))
	}
	module = append(module, section(7, join([]byte{1}, name("run"), []byte{0, run})...))
	if p.start {
		module = append(module, section(8, run))
	}
	var locals []byte
	if p.locals > 0 {
		locals = []byte{1, p.locals, 0x7f}
	}
	module = append(module, section(10, join(leb(functions), bytes.Repeat(function(locals, p.body), functions))...))
	if p.data != nil {
		module = append(module, section(11, activeSegments(p.data)...))
	}
	if p.filler != nil {
		module = append(module, section(0, join(name("filler"), p.filler)...))
	}
	return join(module...)
}

// activeSegments is the content of a data section.
func activeSegments(segments []wasm.Segment) []byte {
	content := leb(len(segments))
	for _, s := range segments {
		content = append(content, join([]byte{0, 0x41}, signed(int(int32(s.Offset))), []byte{0x0b}, leb(len(s.Bytes)), s.Bytes)...)
	}
	return content
}

// Instruction sequences.
var (
	nothing     = []byte{}
	unreachable = []byte{0x00}
	forever     = []byte{0x03, 0x40, 0x0c, 0, 0x0b}       // loop br 0 end
	divide      = []byte{0x41, 1, 0x41, 0, 0x6d, 0x1a}    // i32.const 1, i32.const 0, i32.div_s, drop
	callImport  = []byte{0x10, 0}                         // call 0
	recurse     = []byte{0x10, 0}                         // call 0, which is itself without an import
	outOfBounds = []byte{0x41, 0x7f, 0x28, 2, 0, 0x1a}    // i32.const -1, i32.load, drop
	growAndGoOn = []byte{0x41, 0x80, 0x20, 0x40, 0, 0x1a} // memory.grow 4096, drop
	// ref.null func, i32.const 0x1000000, table.grow 0, i32.const -1, i32.ne, if unreachable end
	growTable = []byte{0xd0, 0x70, 0x41, 0x80, 0x80, 0x80, 0x08, 0xfc, 0x0f, 0, 0x41, 0x7f, 0x47, 0x04, 0x40, 0x00, 0x0b}
	growOrDie = []byte{0x41, 0x80, 0x20, 0x40, 0, 0x41, 0x7f, 0x46, // memory.grow 4096, i32.const -1, i32.eq
		0x04, 0x40, 0x00, 0x0b} // if unreachable end
)

// with returns a context for calls of functions that are metered and have no memory.
func (m *meter) with(ctx context.Context) context.Context {
	run := &runContext{meter: m, instance: &instance{memory: &linearMemory{}}}
	run.Hold(ctx, run)
	return run
}

// memoryOf returns the instance's memory, which for a module without one is a nil pointer of
// wazero's inside a non-nil interface.
func memoryOf(module api.Module) (api.Memory, bool) {
	m := module.Memory()
	return m, !reflect.ValueOf(m).IsNil()
}

// occupyStarts keeps the engine from doing anything in the background.
func (e *Engine) occupyStarts() {
	for range cap(e.starts) {
		e.starts <- struct{}{}
	}
}

// memoryView shows wazero's memory to host functions.
type memoryView struct{ api.Memory }

// View implements hostfuncs.Memory.
func (m memoryView) View(offset, length uint32) ([]byte, bool) { return m.Read(offset, length) }

// readAtDepth is a WASI command that calls itself depth times, and then reads its input.
func readAtDepth(depth int) []byte {
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 3, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 1, 0x7f, 0, 0x60, 0, 0),
		section(2, join([]byte{1}, name("wasi_snapshot_preview1"), name("fd_read"), []byte{0, 0})...),
		section(3, 2, 1, 2),
		section(5, 1, 0, 1),
		section(7, join([]byte{1}, name("_start"), []byte{0, 2})...),
		section(10, join([]byte{2},
			// if local 0 is 0, read, else call itself with local 0 - 1
			function(nil, []byte{0x20, 0, 0x45, 0x04, 0x40, 0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a,
				0x05, 0x20, 0, 0x41, 1, 0x6b, 0x10, 1, 0x0b}),
			function(nil, []byte{0x41}, sleb(int64(depth)), []byte{0x10, 1}))...))
}

// readNothing is a fd_read that reads nothing.
func readNothing() hostfuncs.Function {
	i32 := hostfuncs.I32
	return hostfuncs.Function{
		Module: "wasi_snapshot_preview1", Name: "fd_read", Params: []hostfuncs.ValueType{i32, i32, i32, i32}, Results: []hostfuncs.ValueType{i32},
		Call: func(_ context.Context, _ hostfuncs.Memory, stack []uint64) error { stack[0] = 0; return nil },
	}
}

func noHost(context.Context, hostfuncs.Memory, []uint64) error { return nil }
