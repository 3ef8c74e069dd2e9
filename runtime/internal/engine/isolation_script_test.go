//go:build !race

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

// operation is what the scripted guest reads.
type operation struct{ code, a, b, c uint32 }

// What opAct asks of the host, with its other operands.
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
	reports []uint64 // what the guest told
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

// script is what is run in one sequence, and within which bounds.
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

// probe is a script that comes to the same each time, and first looks at everything: also at
// what memory holds once it has grown to so many pages.
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

// address is mostly in the memory that there is at first.
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

// stopped goes on until the run is stopped.
func (m maker) stopped() []operation {
	ends := [][]operation{
		{{code: opSpin}},
		{{code: opAct, a: actBlock}},
		{{code: opAct, a: actCancel}, {code: opSpin}},
		{{code: opStride, b: 1, c: m.Uint32()}, {code: opStride, b: 3, c: m.Uint32()}, {code: opSpin}},
	}
	return ends[m.IntN(len(ends))]
}
