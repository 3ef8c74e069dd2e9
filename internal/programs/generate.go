package programs

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// maxFuel is the maximum fuel that a bounded program may use, and an endless one before it enters its endless loop. It
// exceeds the fuel that a guest is given at once.
const maxFuel = 250_000

// Bounded returns a program that terminates, and the outcome of its run.
func Bounded(seed uint64) (*Program, Outcome) {
	return first(seed, (*generator).bounded, func(_ Outcome, err error) bool { return err == nil })
}

// Endless returns a program that neither terminates nor traps.
func Endless(seed uint64) *Program { return endlessProgram(seed, false) }

// EndlessCommand returns an endless program that is a command and imports only WASI.
func EndlessCommand(seed uint64) *Program { return endlessProgram(seed, true) }

func endlessProgram(seed uint64, wasi bool) *Program {
	p, _ := first(seed, func(g *generator) *Program { g.wasi = wasi; return g.neverEnding() },
		func(o Outcome, err error) bool {
			return o.Endless && errors.Is(err, errLong)
		})
	return p
}

// first generates programs until the run of one is as wanted.
func first(seed uint64, generate func(*generator) *Program, wanted func(Outcome, error) bool) (*Program, Outcome) {
	for attempt := range uint64(1000) {
		p := generate(newGenerator(seed, attempt))
		outcome, err := p.Run(maxFuel)
		switch {
		case wanted(outcome, err):
			return p, outcome
		case !errors.Is(err, errLong) && !errors.Is(err, errDeep):
			panic(fmt.Sprintf("program %d, attempt %d: %v\n%s", seed, attempt, err, p))
		}
	}
	panic(fmt.Sprintf("no program for %d", seed))
}

// generator generates one program, or one of its libraries.
type generator struct {
	r       *rand.Rand
	p       *Program
	wasi    bool // import only WASI
	tables  bool // change tables, so that each run needs a separate instance
	small   bool
	endless bool           // the program does not terminate
	dives   bool           // it does so in a loop that does little but call recursive functions
	imports map[string]int // indices of the functions that the host provides

	callable  []int // functions that return, each of which calls those before it
	levels    []int // for each slot, the last index in callable of a function it may hold
	leaves    []int // functions without parameters and results that call nothing
	recursive []recursion
	// Functions of libraries: those that call recursive ones, that never return, and that have the host
	// observe the state of the library.
	descenders, unending, tellers []int
	// zero and one are the globals with these values, and recursions the one that counts how many
	// more calls of functions not before the caller are allowed.
	zero, one, recursions int
	plain                 []int // the globals to read and write
	// link is the global with the address of a word that holds such an address; negative if there are none.
	link int
}

func newGenerator(seed, attempt uint64) *generator {
	g := &generator{r: rand.New(rand.NewPCG(seed, attempt)), p: &Program{Seed: seed, Start: -1}, imports: map[string]int{}}
	g.small = g.chance(35)
	g.tables = g.chance(35)
	return g
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

// few returns a number up to limit, preferring small ones.
func (g *generator) few(limit int) int {
	n := g.r.IntN(limit + 1)
	if g.small || g.chance(40) {
		n = min(n, g.r.IntN(limit+1))
	}
	return n
}

func oneOf[T any](g *generator, all ...T) T { return all[g.r.IntN(len(all))] }

func (g *generator) anyType() Type { return oneOf(g, I32, I32, I32, I64, I64, F64) }

func (g *generator) anyTypes(limit int) []Type {
	types := make([]Type, g.few(limit))
	for n := range types {
		types[n] = g.anyType()
	}
	return types
}

func (g *generator) anySignature() Signature {
	if g.chance(30) {
		return Signature{}
	}
	return Signature{g.anyTypes(3), g.anyTypes(2)}
}

// environment generates everything but the functions that the host calls.
func (g *generator) environment() {
	p := g.p
	p.Shape = oneOf(g, "command", "command", "reactor", "plugin")
	if g.wasi {
		p.Shape = "command"
	}
	if p.Shape == "reactor" {
		g.tables = false // a reactor that changes tables cannot be started
	}
	if p.Shape != "reactor" && !g.wasi && g.chance(35) {
		g.libraries()
	}
	g.module(p.Libraries)
}

// module generates everything but the functions that the host calls. The module imports from
// libraries.
func (g *generator) module(libraries []Library) {
	p := g.p
	offered := []Import{{WASIModule, Yield, Signature{Results: []Type{I32}}}}
	if !g.wasi {
		i32 := []Type{I32}
		offered = append(offered, Import{HostModule, Observe, Signature{Params: []Type{I64}}},
			Import{HostModule, Finish, Signature{Params: i32}}, Import{HostModule, Echo, Signature{i32, i32}})
	}
	g.r.Shuffle(len(offered), func(i, j int) { offered[i], offered[j] = offered[j], offered[i] })
	for n, i := range offered {
		g.imports[i.Name] = n
	}
	p.Imports = offered
	g.importFrom(libraries)
	g.zero, g.one, g.recursions = g.global(I32, 0), g.global(I32, 1), g.global(I32, uint64(g.few(8)))
	p.Progress = g.global(I32, 0)
	for range 1 + g.few(3) {
		g.plain = append(g.plain, g.global(g.anyType(), uint64(g.r.IntN(100))))
	}
	p.Pages = 1 + g.few(2)
	bytes := make([]byte, 64)
	for n := range bytes {
		bytes[n] = byte(g.r.IntN(256))
	}
	p.Data = []Segment{{Offset: g.r.IntN(1000), Bytes: bytes}}
	if g.tables {
		p.Data = append(p.Data, Segment{Offset: -1, Bytes: bytes})
	}
	g.links()
	p.MostPages = p.Pages + g.r.IntN(morePages)
	g.library()
}

func (g *generator) global(t Type, value uint64) int {
	if t == F64 {
		value = 0x4000_0000_0000_0000 // 2.0
	}
	g.p.Globals = append(g.p.Globals, Global{t, value})
	return len(g.p.Globals) - 1
}

// library generates functions that return.
func (g *generator) library() {
	p := g.p
	for range 1 + g.few(1) {
		g.leaves = append(g.leaves, g.leaf())
	}
	g.callable = append(g.callable, g.leaves...)
	written := len(g.callable)
	for range g.few(6) {
		g.callable = append(g.callable, g.declare(g.anySignature()))
	}
	for n, function := range g.callable {
		for range g.r.IntN(3) {
			p.Slots = append(p.Slots, function)
			g.levels = append(g.levels, n)
		}
	}
	if g.tables {
		p.Elements = []Segment{{Offset: -1}}
		for range 4 {
			p.Elements[0].Functions = append(p.Elements[0].Functions, g.anyFunction())
		}
	}
	for n, function := range g.callable {
		if n < written {
			continue
		}
		budget := 30
		if g.chance(50) {
			budget = g.few(8) // a leaf, or close to one
		}
		w := g.writer(function, n, budget)
		w.f.Body = w.body(nil, w.f.Type.Results)
	}
	if g.dives || g.chance(70) {
		for range 1 + g.few(1) {
			g.recursion()
		}
	}
}

// anyFunction returns a function for references that are never called.
func (g *generator) anyFunction() int {
	if len(g.callable) == 0 {
		g.callable = append(g.callable, g.declare(Signature{}))
	}
	return oneOf(g, g.callable...)
}

// declare adds a function whose body is yet to be generated.
func (g *generator) declare(s Signature) int {
	g.p.Functions = append(g.p.Functions, &Function{Type: s})
	return len(g.p.Imports) + len(g.p.Functions) - 1
}

func (g *generator) export(name string, function int) {
	g.p.Exports = append(g.p.Exports, Export{name, function})
}

// bounded generates a program that terminates, if the interpreter confirms it.
func (g *generator) bounded() *Program {
	g.environment()
	if g.chance(15) {
		g.p.Start = g.finite(Signature{}, false)
	}
	g.initialize()
	g.enter(func(s Signature) int { return g.finite(s, true) })
	return g.p
}

// initialize gives a reactor a function to call first.
func (g *generator) initialize() {
	if g.p.Shape == "reactor" {
		g.export("_initialize", g.finite(Signature{}, false))
		g.p.Before = "_initialize"
	}
}

// finite adds a function that returns. If it tells, the host observes the state that it leaves.
func (g *generator) finite(s Signature, tells bool) int {
	function := g.declare(s)
	w := g.writer(function, len(g.callable), 60)
	w.barrier, w.descends = 1, true
	// Nothing leaves this block for the function's label, so the telling cannot be skipped.
	w.f.Body = code{w.enclosed(func(*Node) code { return w.body(nil, nil) })}
	if tells {
		w.f.Body = append(w.f.Body, w.tell()...)
	}
	w.f.Body = append(w.f.Body, w.expressions(s.Results)...)
	return function
}

// neverEnding generates a program that does not terminate.
func (g *generator) neverEnding() *Program {
	g.endless, g.dives = true, g.chance(25)
	g.environment()
	switch place := g.r.IntN(12); {
	case place == 0:
		g.p.Start = g.infinite(Signature{})
		g.enter(func(s Signature) int { return g.finite(s, false) })
		return g.p
	case g.p.Shape == "reactor" && place < 5:
		g.export("_initialize", g.infinite(Signature{}))
		g.export("run", g.finite(Signature{}, false))
		g.p.Entry = "_initialize"
		return g.p
	}
	g.initialize()
	if g.chance(10) {
		g.p.Start = g.finite(Signature{}, false)
	}
	g.enter(g.infinite)
	return g.p
}

// enter exports the function that the host calls.
func (g *generator) enter(body func(Signature) int) {
	g.p.Entry = "run"
	switch g.p.Shape {
	case "command":
		g.p.Entry = "_start"
		fallthrough
	case "reactor":
		g.export(g.p.Entry, body(Signature{}))
	default:
		plugin := body(Signature{Results: []Type{I32}})
		g.export("plugin", plugin)
		wrapper := g.declare(Signature{})
		g.p.Functions[wrapper-len(g.p.Imports)].Body = code{node(dropOp, call(plugin))}
		g.export("run", wrapper)
	}
}
