package programs

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// mostFuel is what a bounded program may take, and an endless one until it comes to where it
// does not come out of. Some take more than a guest is given at once.
const mostFuel = 250_000

// Bounded returns a program that comes to an end, and what its run comes to.
func Bounded(seed uint64) (*Program, Outcome) {
	for attempt := range uint64(1000) {
		p := newGenerator(seed, attempt).bounded()
		outcome, err := p.Run(mostFuel)
		switch {
		case err == nil:
			return p, outcome
		case !errors.Is(err, errLong) && !errors.Is(err, errDeep):
			panic(fmt.Sprintf("bounded program %d, attempt %d: %v\n%s", seed, attempt, err, p))
		}
	}
	panic(fmt.Sprintf("no bounded program for %d", seed))
}

// Endless returns a program that never comes to an end, and never traps.
func Endless(seed uint64) *Program { return endless(seed, false) }

// EndlessCommand returns an endless program that imports nothing but WASI, and is a command.
func EndlessCommand(seed uint64) *Program { return endless(seed, true) }

func endless(seed uint64, wasi bool) *Program {
	for attempt := range uint64(1000) {
		g := newGenerator(seed, attempt)
		g.wasi = wasi
		p := g.endless()
		outcome, err := p.Run(mostFuel)
		if !errors.Is(err, errLong) && !errors.Is(err, errDeep) {
			panic(fmt.Sprintf("endless program %d, attempt %d: %v\n%s", seed, attempt, err, p))
		}
		if outcome.Endless && errors.Is(err, errLong) {
			return p
		}
	}
	panic(fmt.Sprintf("no endless program for %d", seed))
}

// generator makes one program.
type generator struct {
	r       *rand.Rand
	p       *Program
	wasi    bool
	tables  bool // are changed, so that each run needs an instance of its own
	small   bool
	imports map[string]int // where the host offers them

	callable []int // functions that come back, each of which calls those before it
	levels   []int // for each slot, the last place in callable of what it may hold
	// The globals that are what they are called, and how often functions may yet call those
	// that are not before them.
	zero, one, recursions int
	plain                 []int // the globals to read and write
}

func newGenerator(seed, attempt uint64) *generator {
	g := &generator{r: rand.New(rand.NewPCG(seed, attempt)), p: &Program{Seed: seed, Start: -1}, imports: map[string]int{}}
	g.small = g.chance(35)
	g.tables = g.chance(35)
	return g
}

// chance is true so many times in a hundred.
func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

// few returns a number of which small ones are likelier.
func (g *generator) few(most int) int {
	n := g.r.IntN(most + 1)
	if g.small || g.chance(40) {
		n = min(n, g.r.IntN(most+1))
	}
	return n
}

func oneOf[T any](g *generator, all ...T) T { return all[g.r.IntN(len(all))] }

func (g *generator) anyType() Type { return oneOf(g, I32, I32, I32, I64, I64, F64) }

func (g *generator) anyTypes(most int) []Type {
	types := make([]Type, g.few(most))
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

// environment makes all but the functions that a program is for.
func (g *generator) environment() {
	p := g.p
	p.Shape = oneOf(g, "command", "command", "reactor", "plugin")
	if g.wasi {
		p.Shape = "command"
	}
	if p.Shape == "reactor" {
		g.tables = false // else it could not be started
	}
	offered := []Import{{WASIModule, Yield, Signature{Results: []Type{I32}}}}
	if !g.wasi {
		offered = append(offered, Import{HostModule, Observe, Signature{Params: []Type{I64}}},
			Import{HostModule, Finish, Signature{Params: []Type{I32}}}, Import{HostModule, Echo, Signature{[]Type{I32}, []Type{I32}}})
	}
	g.r.Shuffle(len(offered), func(i, j int) { offered[i], offered[j] = offered[j], offered[i] })
	for n, i := range offered {
		g.imports[i.Name] = n
	}
	p.Imports = offered
	g.zero, g.one, g.recursions = g.global(I32, 0), g.global(I32, 1), g.global(I32, uint64(g.few(8)))
	for range 1 + g.few(3) {
		g.plain = append(g.plain, g.global(g.anyType(), uint64(g.r.IntN(100))))
	}
	p.Pages = 1 + g.few(2)
	bytes := make([]byte, 64)
	for n := range bytes {
		bytes[n] = byte(g.r.IntN(256))
	}
	p.Data = append(p.Data, Segment{Offset: g.r.IntN(1000), Bytes: bytes})
	if g.tables {
		p.Data = append(p.Data, Segment{Offset: -1, Bytes: bytes})
	}
	g.library()
}

func (g *generator) global(t Type, value uint64) int {
	if t == F64 {
		value = 0x4000_0000_0000_0000 // 2.0
	}
	g.p.Globals = append(g.p.Globals, Global{t, value})
	return len(g.p.Globals) - 1
}

// library makes functions that come back.
func (g *generator) library() {
	p := g.p
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
		budget := 30
		if g.chance(50) {
			budget = g.few(8) // a leaf, or close to one
		}
		w := g.writer(function, n, budget)
		w.f.Body = w.body(nil, w.f.Type.Results)
	}
}

// anyFunction is one to refer to, and never to call.
func (g *generator) anyFunction() int {
	if len(g.callable) == 0 {
		g.callable = append(g.callable, g.declare(Signature{}))
	}
	return oneOf(g, g.callable...)
}

// declare adds a function without a body.
func (g *generator) declare(s Signature) int {
	g.p.Functions = append(g.p.Functions, &Function{Type: s})
	return len(g.p.Imports) + len(g.p.Functions) - 1
}

func (g *generator) export(name string, function int) {
	g.p.Exports = append(g.p.Exports, Export{name, function})
}

// bounded makes a program that ends, as far as the interpreter confirms it.
func (g *generator) bounded() *Program {
	g.environment()
	if g.chance(15) {
		g.p.Start = g.finite(Signature{}, false)
	}
	if g.p.Shape == "reactor" {
		g.export("_initialize", g.finite(Signature{}, false))
		g.p.Before = "_initialize"
	}
	g.enter(func(s Signature) int { return g.finite(s, true) })
	return g.p
}

// finite adds a function that comes back. One that tells, tells all that it leaves.
func (g *generator) finite(s Signature, tells bool) int {
	function := g.declare(s)
	w := g.writer(function, len(g.callable), 60)
	body := w.block(blockOp, Signature{}, nil) // so that the telling is not passed by
	w.barrier = 1
	body.Body = w.inside(scope{node: body, counter: -1}, func() []*Node { return w.body(nil, nil) })
	w.f.Body = []*Node{body}
	if tells {
		w.f.Body = append(w.f.Body, w.tell()...)
	}
	w.f.Body = append(w.f.Body, w.expressions(s.Results)...)
	return function
}

// endless makes a program that does not end.
func (g *generator) endless() *Program {
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
	if g.p.Shape == "reactor" {
		g.export("_initialize", g.finite(Signature{}, false))
		g.p.Before = "_initialize"
	}
	if g.chance(10) {
		g.p.Start = g.finite(Signature{}, false)
	}
	g.enter(g.infinite)
	return g.p
}

// enter exports what the host calls.
func (g *generator) enter(body func(Signature) int) {
	switch g.p.Shape {
	case "command":
		g.p.Entry = "_start"
		g.export("_start", body(Signature{}))
	case "reactor":
		g.p.Entry = "run"
		g.export("run", body(Signature{}))
	default:
		g.p.Entry = "run"
		plugin := body(Signature{Results: []Type{I32}})
		g.export("plugin", plugin)
		wrapper := g.declare(Signature{})
		g.p.Functions[wrapper-len(g.p.Imports)].Body = []*Node{node(dropOp, call(plugin))}
		g.export("run", wrapper)
	}
}
