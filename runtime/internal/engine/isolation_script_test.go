//go:build !race

// Nothing in the tests of isolation runs at the same time as anything else, and the race
// detector would take minutes.

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
)

// operation is one operation that the scripted guest reads.
type operation struct{ code, a, b, c uint32 }

// The actions of the host that opAct requests, with its other operands.
const (
	actReturn   = iota // b
	actScribble        // writes to b places, a different set for each c
	actPress           // puts the instance's memory under pressure
	actFail
	actExit
	actPanic
	actBlock // until the run is stopped
	actCancel
)

var (
	errAct  = errors.New("the host function failed")
	errExit = errors.New("the guest asked to end")
)

// session is one run of the scripted guest, as its host functions see it.
type session struct {
	script  []operation
	read    int      // operations
	reports []uint64 // values that the guest reported
	memory  int      // bytes of it that actScribble may write to
	press   func()
	cancel  context.CancelFunc
}

type sessionKey struct{}

func sessionOf(ctx context.Context) *session { return ctx.Value(sessionKey{}).(*session) }

// scriptFunctions are the imports of the scripted guest.
func scriptFunctions() []hostfuncs.Function {
	i32 := hostfuncs.I32
	one, three, four := []hostfuncs.ValueType{i32}, []hostfuncs.ValueType{i32, i32, i32}, []hostfuncs.ValueType{i32, i32, i32, i32}
	return []hostfuncs.Function{
		{Module: "wasi_snapshot_preview1", Name: "fd_read", Params: four, Results: one, Call: readOperation},
		{Module: "test", Name: "act", Params: three, Results: one, Call: act},
		{Module: "test", Name: "report", Params: []hostfuncs.ValueType{hostfuncs.I64},
			Call: func(ctx context.Context, _ hostfuncs.Memory, stack []uint64) error {
				s := sessionOf(ctx)
				s.reports = append(s.reports, stack[0])
				return nil
			}},
	}
}

var errView = errors.New("the guest's memory is not where it says")

// readOperation is fd_read for one place of an operation's size.
func readOperation(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
	s := sessionOf(ctx)
	place, ok := memory.View(uint32(stack[1]), 8)
	count, counted := memory.View(uint32(stack[3]), 4)
	if !ok || !counted {
		return errView
	}
	stack[0] = 0
	if s.read == len(s.script) {
		binary.LittleEndian.PutUint32(count, 0)
		return nil
	}
	to, ok := memory.View(binary.LittleEndian.Uint32(place), binary.LittleEndian.Uint32(place[4:]))
	if !ok || len(to) != operationSize {
		return errView
	}
	o := s.script[s.read]
	for n, word := range []uint32{o.code, o.a, o.b, o.c} {
		binary.LittleEndian.PutUint32(to[4*n:], word)
	}
	binary.LittleEndian.PutUint32(count, operationSize)
	s.read++
	return nil
}

func act(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
	s, b, c := sessionOf(ctx), uint32(stack[1]), uint32(stack[2])
	what := uint32(stack[0]) // the rest of the word may be anything
	stack[0] = uint64(b)
	switch what {
	case actScribble:
		view, ok := memory.View(0, uint32(s.memory))
		if !ok {
			return errView
		}
		random := rand.New(rand.NewPCG(uint64(c), 0))
		for range b {
			view[random.IntN(len(view))] = byte(random.Uint32())
		}
	case actPress:
		s.press()
	case actFail:
		return errAct
	case actExit:
		return errExit
	case actPanic:
		panic("a bug of the host's")
	case actBlock:
		<-ctx.Done()
		return context.Cause(ctx)
	case actCancel:
		s.cancel()
	}
	return nil
}

// kindOf names how a run ended.
func kindOf(err error) string {
	var failure *Error
	switch {
	case err == nil:
		return "returned"
	case errors.Is(err, ErrTrap) && errors.As(err, &failure):
		return failure.Reason
	}
	for name, kind := range map[string]error{"fuel": ErrFuel, "deadline": context.DeadlineExceeded, "cancelled": context.Canceled,
		"host error": errAct, "exit": errExit, "panic": ErrHost} {
		if errors.Is(err, kind) {
			return name
		}
	}
	return "unknown: " + err.Error()
}

// script holds the operations of one sequence, and their bounds.
type script struct {
	operations []operation
	fuel       int64
	timeout    time.Duration // 0: none
	floods     int           // the operation that writes more pages than a memory keeps; -1: none
}

func (s script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fuel %d, timeout %s:", s.fuel, s.timeout)
	for _, o := range s.operations {
		fmt.Fprintf(&b, " %d(%#x, %#x, %#x)", o.code, o.a, o.b, o.c)
	}
	return b.String()
}

// maker makes scripts.
type maker struct {
	*rand.Rand
	unbounded bool // the guest may grow to the limit of the run, else to its own maximum
}

const floodPages = 80 // 5 MiB

// any is a script for a run after which nothing may be left.
func (m maker) any() script {
	s := script{floods: -1}
	for range m.IntN(9) {
		s.operations = append(s.operations, m.harmless())
	}
	if m.IntN(3) == 0 {
		size := 1 + m.Uint32N(5)
		s.operations = append(s.operations, operation{opGrow, size, 0, 0}, operation{opFill, startPages << 16, m.Uint32(), size << 16})
	}
	if m.unbounded && m.IntN(16) == 0 {
		s.operations = append(s.operations, operation{opGrow, floodPages, 0, 0}, operation{opFill, startPages << 16, m.Uint32(), floodPages << 16})
		s.floods = len(s.operations)
	}
	if m.IntN(3) == 0 {
		s.operations = append(s.operations, operation{code: opAct, a: actPress})
	}
	end := m.end()
	if m.IntN(4) == 0 {
		end = m.stopped()
		s.timeout = time.Duration(100+m.IntN(500)) * time.Microsecond
		if m.IntN(3) == 0 {
			s.fuel = 10_000 + m.Int64N(100_000)
		}
	} else if m.IntN(16) == 0 {
		s.fuel = 1 + m.Int64N(20_000)
	}
	s.operations = append(s.operations, end...)
	return s
}

// probe is a script with the same outcome each time, and first looks at everything: also at what memory holds once it
// has grown to so many pages.
func (m maker) probe(pages int) script {
	s := script{operations: []operation{{code: opGrow, a: uint32(max(pages-startPages, 0))}, {code: opChecksum}}, floods: -1}
	for range m.IntN(4) {
		if o := m.harmless(); o.code != opAct || o.a != actPress {
			s.operations = append(s.operations, o)
		}
	}
	s.operations = append(s.operations, m.end()...)
	return s
}

// address is mostly in the initial memory.
func (m maker) address(size uint32) uint32 {
	if m.IntN(60) == 0 {
		return m.Uint32()
	}
	return m.Uint32N(startPages<<16 - size)
}

// harmless is an operation that rarely ends a run.
func (m maker) harmless() operation {
	switch m.IntN(16) {
	case 0, 1, 2:
		return operation{opStore, m.address(4), m.Uint32(), 0}
	case 3:
		size := m.Uint32N(1 << 16)
		return operation{opFill, m.address(size), m.Uint32(), size}
	case 4:
		size := m.Uint32N(1 << 16)
		return operation{opCopy, m.address(size), m.address(size), size}
	case 5, 6:
		return operation{opGrow, m.Uint32N(6), 0, 0}
	case 7, 8:
		return operation{opSetI32 + m.Uint32N(4), m.Uint32(), m.Uint32(), m.Uint32()}
	case 9:
		return m.stride()
	case 10:
		return operation{opLoad, m.address(4), 0, 0}
	case 11:
		return operation{opDescend, m.Uint32N(300), 0, 0}
	case 12:
		return operation{opSpin, 1 + m.Uint32N(5000), 0, 0}
	case 13:
		return operation{opIndirect, tableDouble + m.Uint32N(2), m.Uint32(), 0}
	case 14:
		return operation{code: opAct, a: actScribble, b: m.Uint32N(500), c: m.Uint32()}
	default:
		return operation{code: opAct, a: actReturn + 2*m.Uint32N(2), b: m.Uint32()}
	}
}

// stride writes to every system page, to scattered places, or to the whole memory.
func (m maker) stride() operation {
	distances := []uint32{systemPageSize, systemPageSize, 1 + m.Uint32N(1<<17), 1 + m.Uint32N(1<<17), 7}
	return operation{opStride, m.Uint32N(systemPageSize), distances[m.IntN(len(distances))], m.Uint32()}
}

const systemPageSize = 4096

// end ends a run, the same each time.
func (m maker) end() []operation {
	ends := [][]operation{
		{}, {}, {},
		{{code: opChecksum}},
		{{code: opUnreachable}},
		{{code: opStore, a: math.MaxUint32}},
		{{code: opLoad, a: math.MaxUint32 - 2}},
		{{code: opFill, a: startPages<<16 - 8, b: 1, c: math.MaxUint32}},
		{{code: opCopy, a: 0, b: math.MaxUint32, c: 2}},
		{{code: opDivide, a: 1, b: 0}},
		{{code: opDivide, a: 1 << 31, b: math.MaxUint32}},
		{{code: opIndirect, a: tableMissing}},
		{{code: opIndirect, a: opStore}},
		{{code: opIndirect, a: tableSize}},
		{{code: tableCount}},
		{{code: opDescend, a: math.MaxUint32}},
		{{code: opAct, a: actFail}},
		{{code: opAct, a: actExit}},
		{{code: opAct, a: actPanic}},
		{{code: opGrow, a: 1000}},
		{{code: opGrow, a: math.MaxUint32}, {code: opUnreachable}},
		slices.Repeat([]operation{{code: opGrow, a: 1}}, 24), // in the end at the declared maximum, where there is one
		{{code: opGrow, a: m.Uint32N(24)}, {code: opStride, b: systemPageSize, c: m.Uint32()}},
	}
	return ends[m.IntN(len(ends))]
}

// stopped returns operations that continue until the run is stopped.
func (m maker) stopped() []operation {
	ends := [][]operation{
		{{code: opSpin}},
		{{code: opAct, a: actBlock}},
		{{code: opAct, a: actCancel}, {code: opSpin}},
		{{code: opStride, b: 1, c: m.Uint32()}, {code: opStride, b: 3, c: m.Uint32()}, {code: opSpin}},
	}
	return ends[m.IntN(len(ends))]
}

// scripted is a WASI command that performs the operations in its standard input, one after the other until the input
// ends. Before it first reads it writes, grows its memory, sets its globals and calls itself a few levels deep, so that
// a start leaves traces everywhere.
type scripted struct {
	maximum int  // pages that its memory declares; 0: none
	reactor bool // it is a WASI reactor instead: _initialize does what comes before the first read, and run the rest
}

// Operations of the guest, as they are numbered in its table. Each takes three i32: a, b, c.
const (
	opStore       = iota // b at address a
	opFill               // c bytes at address a with the value b
	opCopy               // c bytes from b to a
	opGrow               // memory by a pages
	opSetI32             // globals, an exported one and one that is not; so do the next three
	opSetI64             //
	opSetF32             //
	opSetF64             //
	opStride             // the byte c at address a and each b bytes further
	opUnreachable        //
	opDivide             // a by b
	opLoad               // from address a
	opDescend            // a calls deep
	opSpin               // a times
	opAct                // the host does a with b and c
	opIndirect           // calls function a of the table with b
	opChecksum           // of memory, its size and the globals
	operations           // their number

	tableDouble  = operations     // a function that opIndirect may call
	tableCount   = operations + 1 // another, which keeps count in a global
	tableMissing = operations + 2 // no function
	tableSize    = operations + 3
)

const (
	firstPages = 3 // of linear memory in the module
	startPages = 4 // once it has started

	// Addresses of the data that the guest reads.
	placesAt, countAt, operationAt = 64, 72, 128
	operationSize                  = 16
)

// Function types by index, and functions.
const (
	typeNothing = iota
	typeRead
	typeAct
	typeReport
	typeUnary
	typeOperation
	typeSum
)

const (
	callRead = iota
	callAct
	callReport
	callStart
	callInterpret
	callNest
	callDescend
	callSum
	callBoot
	callDouble
	callCount
	firstOperation
)

// Instructions.

func getLocal(local byte) []byte        { return []byte{0x20, local} }
func setLocal(local byte) []byte        { return []byte{0x21, local} }
func getGlobal(global byte) []byte      { return []byte{0x23, global} }
func setGlobal(global byte) []byte      { return []byte{0x24, global} }
func constant(n int) []byte             { return join([]byte{0x41}, signed(n)) }
func constant64(n int) []byte           { return join([]byte{0x42}, signed(n)) }
func callFunction(function byte) []byte { return []byte{0x10, function} }
func storeWord(address, n int) []byte {
	return join(constant(address), constant(n), []byte{0x36, 2, 0})
}
func loadWord(address int) []byte { return join(constant(address), []byte{0x28, 2, 0}) }
func reportUnsigned() []byte      { return []byte{0xad, 0x10, callReport} }
func reportSigned() []byte        { return []byte{0xac, 0x10, callReport} }

// joined makes an i64 of two i32 locals.
func joined(high, low byte) []byte {
	return join(getLocal(high), []byte{0xad}, constant64(32), []byte{0x86}, getLocal(low), []byte{0xad, 0x84})
}

var (
	memorySize = []byte{0x3f, 0}
	memoryEnd  = join(memorySize, constant(16), []byte{0x74}) // memory.size << 16
)

// operationBodies are those of the table, in order; their parameters are locals 0 to 2.
func operationBodies() [][]byte {
	return [][]byte{
		opStore:       function(nil, getLocal(0), getLocal(1), []byte{0x36, 2, 0}),
		opFill:        function(nil, getLocal(0), getLocal(1), getLocal(2), []byte{0xfc, 0x0b, 0}),
		opCopy:        function(nil, getLocal(0), getLocal(1), getLocal(2), []byte{0xfc, 0x0a, 0, 0}),
		opGrow:        function(nil, getLocal(0), []byte{0x40, 0}, reportSigned()),
		opSetI32:      function(nil, getLocal(0), setGlobal(0), getLocal(1), setGlobal(1)),
		opSetI64:      function(nil, joined(0, 1), setGlobal(2), joined(1, 2), setGlobal(3)),
		opSetF32:      function(nil, getLocal(0), []byte{0xbe}, setGlobal(4), getLocal(1), []byte{0xbe}, setGlobal(5)),
		opSetF64:      function(nil, joined(0, 1), []byte{0xbf}, setGlobal(6), joined(1, 2), []byte{0xbf}, setGlobal(7)),
		opStride:      strideBody(),
		opUnreachable: function(nil, []byte{0}),
		opDivide:      function(nil, getLocal(0), getLocal(1), []byte{0x6d}, reportSigned()),
		opLoad:        function(nil, getLocal(0), []byte{0x28, 2, 0}, reportUnsigned()),
		opDescend:     function(nil, getLocal(0), callFunction(callDescend), reportUnsigned()),
		opSpin:        function(nil, []byte{0x03, 0x40}, getLocal(0), constant(1), []byte{0x6b, 0x22, 0, 0x0d, 0, 0x0b}),
		opAct:         function(nil, getLocal(0), getLocal(1), getLocal(2), callFunction(callAct), reportUnsigned()),
		opIndirect:    function(nil, getLocal(1), getLocal(0), []byte{0x11, typeUnary, 0}, reportUnsigned()),
		opChecksum:    function(nil, callFunction(callSum), callFunction(callReport)),
	}
}

// strideBody stores local 2 at local 0 and adds local 1 to that, as long as it is in memory.
func strideBody() []byte {
	return function(nil, []byte{0x03, 0x40}, getLocal(0), getLocal(2), []byte{0x3a, 0, 0},
		getLocal(0), getLocal(1), []byte{0x6a, 0x22, 0}, memoryEnd, []byte{0x49, 0x0d, 0, 0x0b})
}

// beforeReading is the code before the first read.
func beforeReading() []byte {
	return join(constant(1), []byte{0x40, 0, 0x1a}, // memory.grow 1, drop
		storeWord(9*systemPageSize, 0x5eed), storeWord(firstPages<<16+70, 0x5eed),
		constant(7), setGlobal(1), constant64(7<<40), setGlobal(3))
}

// reading is what happens from then on, and the answer of what lies above it.
func reading() []byte { return join(constant(5), callFunction(callNest), reportUnsigned()) }

// nestBody calls itself n levels deep, and the interpreter there: 31 n + what came back.
func nestBody() []byte {
	deeper := join(getLocal(0), constant(1), []byte{0x6b}, callFunction(callNest), getLocal(0), constant(31), []byte{0x6c, 0x6a})
	return function(nil, getLocal(0), []byte{0x04, 0x7f}, deeper, []byte{0x05}, callFunction(callInterpret), getGlobal(1), []byte{0x0b})
}

// descendBody calls itself n levels deep, and writes on its way: n.
func descendBody() []byte {
	return function(nil, getLocal(0), []byte{0x04, 0x7f}, storeWord(5*systemPageSize+12, 1),
		getLocal(0), constant(1), []byte{0x6b}, callFunction(callDescend), constant(1), []byte{0x6a, 0x05}, constant(0), []byte{0x0b})
}

// interpretBody reads operations and calls them. The other bytes where it reads may be anything.
func interpretBody() []byte {
	read := join(storeWord(placesAt, operationAt), storeWord(placesAt+4, operationSize), storeWord(countAt, 0),
		constant(0), constant(placesAt), constant(1), constant(countAt), callFunction(callRead), []byte{0x1a})
	perform := join(loadWord(operationAt+4), loadWord(operationAt+8), loadWord(operationAt+12), loadWord(operationAt), []byte{0x11, typeOperation, 0})
	return function(nil, []byte{0x03, 0x40}, read, loadWord(countAt), constant(operationSize), []byte{0x46, 0x04, 0x40},
		perform, []byte{0x0c, 1, 0x0b, 0x0b})
}

// sumBody is a sum of memory, its size and the globals that differs wherever one of them does.
func sumBody() []byte {
	mix := func(value ...byte) []byte { // local 1 = (local 1 ^ value) * an odd number
		return join(getLocal(1), value, []byte{0x85}, constant64(0x100000001b3), []byte{0x7e}, setLocal(1))
	}
	code := join(mix(join(memorySize, []byte{0xad})...),
		[]byte{0x03, 0x40}, mix(join(getLocal(0), []byte{0x29, 3, 0})...),
		getLocal(0), constant(8), []byte{0x6a, 0x22, 0}, memoryEnd, []byte{0x49, 0x0d, 0, 0x0b})
	asLong := [][]byte{{0xad}, {}, {0xbc, 0xad}, {0xbd}} // of i32, i64, f32, f64
	for global := range byte(8) {
		code = join(code, mix(join(getGlobal(global), asLong[global/2])...))
	}
	return function([]byte{2, 1, 0x7f, 1, 0x7e}, code, getLocal(1))
}

func (s scripted) bytes() []byte {
	none, i32 := byte(0x60), byte(0x7f)
	types := join([]byte{7}, []byte{none, 0, 0}, []byte{none, 4, i32, i32, i32, i32, 1, i32}, []byte{none, 3, i32, i32, i32, 1, i32},
		[]byte{none, 1, 0x7e, 0}, []byte{none, 1, i32, 1, i32}, []byte{none, 3, i32, i32, i32, 0}, []byte{none, 0, 1, 0x7e})
	imports := join([]byte{3}, name("wasi_snapshot_preview1"), name("fd_read"), []byte{0, typeRead},
		name("test"), name("act"), []byte{0, typeAct}, name("test"), name("report"), []byte{0, typeReport})
	start := function(nil, beforeReading(), reading())
	if s.reactor {
		start = function(nil, reading())
	}
	functions := [][]byte{start, interpretBody(), nestBody(), descendBody(), sumBody(),
		function(nil, storeWord(2048, 0xb007), getGlobal(0), constant(1), []byte{0x6a}, setGlobal(0)), // the start function
		function(nil, getLocal(0), constant(1), []byte{0x74}),
		function(nil, getGlobal(1), getLocal(0), []byte{0x6a}, setGlobal(1), getGlobal(1))}
	ofType := []byte{typeNothing, typeNothing, typeUnary, typeUnary, typeSum, typeNothing, typeUnary, typeUnary}
	ofType = append(ofType, slices.Repeat([]byte{typeOperation}, operations)...)
	functions = append(functions, operationBodies()...)
	if s.reactor {
		ofType = append(ofType, typeNothing)
		functions = append(functions, function(nil, beforeReading()))
	}

	limits := []byte{0, firstPages}
	if s.maximum > 0 {
		limits = join([]byte{1, firstPages}, leb(s.maximum))
	}
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, types...), section(2, imports...),
		section(3, join(leb(len(ofType)), ofType)...), section(4, 1, 0x70, 1, tableSize, tableSize),
		section(5, join([]byte{1}, limits)...), section(6, globalSection()...), section(7, exportSection(s.reactor)...),
		section(8, callBoot), section(9, elementSection()...),
		section(10, join(leb(len(functions)), join(functions...))...), section(11, dataSection()...))
}

// globalSection has two globals of each type.
func globalSection() []byte {
	return join([]byte{8}, []byte{0x7f, 1, 0x41, 5, 0x0b}, []byte{0x7f, 1, 0x41, 0, 0x0b},
		[]byte{0x7e, 1, 0x42, 5, 0x0b}, []byte{0x7e, 1, 0x42, 0, 0x0b},
		[]byte{0x7d, 1, 0x43, 0, 0, 0x80, 0x3f, 0x0b}, []byte{0x7d, 1, 0x43, 0, 0, 0, 0, 0x0b},
		[]byte{0x7c, 1, 0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x0b}, []byte{0x7c, 1, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b})
}

// exportSection exports one global of each type.
func exportSection(reactor bool) []byte {
	functions := join([]byte{6}, name("_start"), []byte{0, callStart})
	if reactor {
		functions = join([]byte{7}, name("run"), []byte{0, callStart}, name("_initialize"), []byte{0, firstOperation + operations})
	}
	return join(functions, name("memory"), []byte{2, 0},
		name("i32"), []byte{3, 0}, name("i64"), []byte{3, 2}, name("f32"), []byte{3, 4}, name("f64"), []byte{3, 6})
}

func elementSection() []byte {
	var elements []byte
	for n := range operations {
		elements = append(elements, byte(firstOperation+n))
	}
	elements = append(elements, callDouble, callCount)
	return join([]byte{1, 0, 0x41, 0, 0x0b}, leb(len(elements)), elements)
}

// dataSection has some text, also where two pages meet.
func dataSection() []byte {
	text := []byte("what the module brings along")
	segment := func(at int) []byte { return join([]byte{0}, constant(at), []byte{0x0b}, leb(len(text)), text) }
	return join([]byte{3}, segment(1024), segment(1<<16-9), segment(firstPages<<16-len(text)))
}
