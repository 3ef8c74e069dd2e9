package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// This file draws random modules with libraries, for libraries_random_test.go. Calls lead only to functions that were
// made before, or count down, so a module takes long only if calls multiply.

// The value types that are passed between modules, and the opcodes that turn each into an i64 and back.
const (
	typeI32 = 0x7f
	typeI64 = 0x7e
	typeF32 = 0x7d
	typeF64 = 0x7c
)

var (
	toI64   = map[byte][]byte{typeI32: {0xac}, typeI64: nil, typeF32: {0xbc, 0xac}, typeF64: {0xbd}}
	fromI64 = map[byte][]byte{typeI32: {0xa7}, typeI64: nil, typeF32: {0xb4}, typeF64: {0xb9}} // none makes a NaN
)

type drawnType struct{ params, results []byte }

func (t drawnType) bytes() []byte {
	return join([]byte{0x60}, leb(len(t.params)), t.params, leb(len(t.results)), t.results)
}

// drawnModule is a module from which other modules can import.
type drawnModule struct {
	name    string
	bytes   []byte
	exports []drawnType // of "f0", "f1" …
}

// observers are the host functions that modules import: one takes a value, the other returns what it
// sees at an address of the caller's memory.
var observers = []struct {
	name string
	of   drawnType
}{{"note", drawnType{params: []byte{typeI64}}}, {"see", drawnType{params: []byte{typeI32}, results: []byte{typeI64}}}}

// drawing is a module that is being drawn.
type drawing struct {
	*rand.Rand
	types     []drawnType
	functions []drawnType // imports first
	imports   [][]byte
	bodies    [][]byte
	exports   [][]byte
	globals   []byte // their types
	slots     []int  // the functions in the table; negative for none
	hasMemory bool
	minimum   int // of the memory, in pages
	passive   int // passive data segments
	unusual   bool
}

func (d *drawing) chance(percent int) bool { return d.IntN(100) < percent }

// one returns an element of a list.
func one[T any](d *drawing, all ...T) T { return all[d.IntN(len(all))] }

func (d *drawing) typeIndex(of drawnType) []byte {
	same := func(t drawnType) bool {
		return slices.Equal(t.params, of.params) && slices.Equal(t.results, of.results)
	}
	index := slices.IndexFunc(d.types, same)
	if index < 0 {
		index = len(d.types)
		d.types = append(d.types, of)
	}
	return leb(index)
}

func (d *drawing) anyTypes(most int) (types []byte) {
	for range d.IntN(most + 1) {
		types = append(types, one[byte](d, typeI32, typeI64, typeI64, typeF32, typeF64))
	}
	return types
}

func (d *drawing) declare(of drawnType, body []byte) int {
	d.functions = append(d.functions, of)
	d.bodies = append(d.bodies, body)
	return len(d.functions) - 1
}

func (d *drawing) importing(module, function string, of drawnType) {
	d.imports = append(d.imports, join(name(module), name(function), []byte{0}, d.typeIndex(of)))
	d.functions = append(d.functions, of)
}

func (d *drawing) export(as string, function int) {
	d.exports = append(d.exports, join(name(as), []byte{0}, leb(function)))
}

// drawModule draws a module that imports from earlier ones. All export "sum" and "init", and the main one "run".
func drawModule(r *rand.Rand, called string, from []*drawnModule, isMain bool) *drawnModule {
	d := &drawing{Rand: r, hasMemory: r.IntN(100) < 85, minimum: r.IntN(3), unusual: r.IntN(100) < 20}
	made := &drawnModule{name: called}
	for _, o := range observers {
		d.importing("test", o.name, o.of)
	}
	for _, m := range from {
		d.importing(m.name, "sum", drawnType{results: []byte{typeI64}})
		for n, of := range m.exports {
			if d.chance(70) {
				d.importing(m.name, fmt.Sprintf("f%d", n), of)
			}
		}
	}
	imported := len(d.functions)
	for range d.IntN(4) {
		d.globals = append(d.globals, one[byte](d, typeI32, typeI64, typeF64))
	}
	if d.hasMemory && d.chance(50) {
		d.passive = 1 + d.IntN(2)
	}
	for range d.IntN(5) {
		d.slots = append(d.slots, d.IntN(imported+1)-1)
	}
	exported := func(n, function int) {
		d.export(fmt.Sprintf("f%d", n), function)
		made.exports = append(made.exports, d.functions[function])
	}
	functions := 1 + d.IntN(4)
	for n := range functions {
		switch {
		case d.chance(15): // an import is passed on
			exported(n, d.IntN(imported))
		case d.chance(15):
			exported(n, d.recursive())
		default:
			of := drawnType{d.anyTypes(3), d.anyTypes(2)}
			exported(n, d.declare(of, d.body(of, 3+d.IntN(5))))
		}
	}
	none := drawnType{}
	start := -1
	if d.chance(40) {
		start = d.declare(none, d.body(none, 2))
	}
	d.export("sum", d.declare(drawnType{results: []byte{typeI64}}, d.sum(isMain)))
	if d.export("init", d.declare(none, d.body(none, 3))); isMain {
		d.export("run", d.declare(drawnType{results: []byte{typeI64}}, d.run()))
	}
	made.bytes = d.assemble(imported, start)
	return made
}

// recursive declares a function that calls itself up to 63 times.
func (d *drawing) recursive() int {
	of, self := drawnType{[]byte{typeI32}, []byte{typeI64}}, len(d.functions)
	w := d.writer(of)
	w.put(0x20, 0, 0x41, 0x3f, 0x71, 0x22, 0, 0x45, 0x04, typeI64) // the parameter, cut to 6 bits, is 0
	w.constant()
	w.put(0x05)
	w.expression(1)
	w.put(0x20, 0, 0x41, 1, 0x6b, 0x10)
	w.put(leb(self)...)
	w.put(0x7c, 0x0b)
	return d.declare(of, w.function())
}

// sum is a function whose result depends on the module's memory and globals.
func (d *drawing) sum(all bool) []byte {
	w := d.writer(drawnType{})
	w.put(0x42, 0)
	for n, of := range d.globals {
		w.put(join([]byte{0x23}, leb(n), toI64[of], []byte{0x42, 7, 0x7e, 0x85})...) // ^= global*7
	}
	if d.hasMemory {
		w.put(0x3f, 0, 0xad, 0x7c) // += memory.size
		if d.minimum > 0 {
			counter := w.local(typeI32)
			w.put(0x41)
			w.put(sleb(2048)...)
			w.put(0x21, counter, 0x21, w.scratch, 0x03, 0x40)
			w.put(0x20, w.scratch, 0x42, 5, 0x89, 0x20, counter, 0x41, 3, 0x74, 0x29, 0, 0, 0x85, 0x21, w.scratch) // rotl 5 ^ load
			w.put(0x20, counter, 0x41, 1, 0x6b, 0x22, counter, 0x0d, 0, 0x0b, 0x20, w.scratch)
		}
	}
	if all {
		for _, i := range d.importsOf("sum") {
			w.put(join([]byte{0x10}, leb(i), []byte{0x42, 11, 0x89, 0x85})...)
		}
	}
	return w.function()
}

// importsOf returns the functions that are imported under a name.
func (d *drawing) importsOf(function string) (found []int) {
	for n, i := range d.imports {
		module := int(i[0]) + 1
		if string(i[module+1:module+1+int(i[module])]) == function {
			found = append(found, n)
		}
	}
	return found
}

// run is the function that tests call: it executes statements, and returns a value that depends on the state of all
// modules.
func (d *drawing) run() []byte {
	w := d.writer(drawnType{})
	for range 3 {
		w.statement(2)
	}
	w.expression(2)
	w.call(len(d.functions) - 2) // sum: "init" comes after it
	w.put(0x85)
	return w.function()
}

func (d *drawing) body(of drawnType, statements int) []byte {
	w := d.writer(of)
	for range statements {
		w.statement(2)
	}
	for _, result := range of.results {
		w.expression(2)
		w.put(fromI64[result]...)
	}
	return w.function()
}

func (d *drawing) assemble(imported, start int) []byte {
	var functions, bodies, types, globals, data [][]byte
	for _, of := range d.functions[imported:] {
		functions = append(functions, d.typeIndex(of))
	}
	for _, body := range d.bodies {
		bodies = append(bodies, join(leb(len(body)), body))
	}
	for _, of := range d.types {
		types = append(types, of.bytes())
	}
	for _, of := range d.globals {
		initial := map[byte][]byte{typeI32: {0x41, byte(d.IntN(64))}, typeI64: {0x42, byte(d.IntN(64))}, typeF64: {0x44, 0, 0, 0, 0, 0, 0, 0x10, 0x40}}[of]
		globals = append(globals, join([]byte{of, 1}, initial, []byte{0x0b}))
	}
	vector := func(id byte, items [][]byte) []byte {
		if len(items) == 0 {
			return nil
		}
		return section(id, join(leb(len(items)), join(items...))...)
	}
	module := join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, vector(1, types), vector(2, d.imports), vector(3, functions))
	slots := leb(len(d.slots))
	module = join(module, section(4, join([]byte{1, 0x70, 1}, slots, leb(len(d.slots)+4))...))
	if d.hasMemory {
		module = join(module, section(5, join([]byte{1, 1}, leb(d.minimum), leb(d.minimum+2))...))
	}
	module = join(module, vector(6, globals), vector(7, d.exports))
	if start >= 0 {
		module = join(module, section(8, leb(start)...))
	}
	var elements [][]byte
	for n, function := range d.slots {
		if function >= 0 {
			elements = append(elements, join([]byte{0, 0x41}, leb(n), []byte{0x0b, 1}, leb(function)))
		}
	}
	module = join(module, vector(9, elements))
	for range d.passive {
		data = append(data, join([]byte{1}, name(fmt.Sprintf("passive %d", d.Int64()))))
	}
	if d.hasMemory && d.minimum > 0 {
		for range d.IntN(3) {
			data = append(data, join([]byte{0, 0x41}, sleb(int64(d.IntN(60000))), []byte{0x0b}, name(fmt.Sprintf("active %d", d.Int64()))))
		}
	}
	if len(data) > 0 {
		module = join(module, section(12, leb(len(data))...))
	}
	return join(module, vector(10, bodies), vector(11, data))
}

// sleb returns a signed number as LEB128.
func sleb(n int64) (out []byte) {
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			return append(out, low)
		}
		out = append(out, low|0x80)
	}
}

// drawnSource is a module with libraries, and their order.
type drawnSource struct {
	Source
	order []string
}

// drawSource draws a module with 1 to MaxLibraries libraries, each of which may import from those before it.
func drawSource(seed uint64) (drawnSource, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"a", "b", "c", "d"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	source := drawnSource{Source: Source{Libraries: map[string][]byte{}}}
	var made []*drawnModule
	libraries := map[string]*wasm.Module{}
	for n := range 1 + r.IntN(MaxLibraries) {
		from := slices.Clone(made)
		for len(from) > 0 && r.IntN(3) == 0 {
			from = slices.Delete(from, 0, 1)
		}
		m := drawModule(r, names[n], from, false)
		made = append(made, m)
		source.Libraries[m.name] = m.bytes
		description, err := wasm.Inspect(m.bytes)
		if err != nil {
			return source, err
		}
		libraries[m.name] = description
	}
	source.Module = drawModule(r, "main", made, true).bytes
	main, err := wasm.Inspect(source.Module)
	if err != nil {
		return source, err
	}
	linked, err := wasm.Link(main, libraries)
	if err != nil {
		return source, err
	}
	source.order = linked.Order
	return source, nil
}

// bits returns 8 bytes as a number.
func bits(bytes []byte) uint64 { return binary.LittleEndian.Uint64(bytes) }
