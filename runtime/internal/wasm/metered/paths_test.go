package metered

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// This file follows random paths through modules that Verify accepts, and counts. It takes nothing from
// the proof: only where the added sequences are. A guest's conditions are drawn, those of added code are computed.

var pathsOf = flag.Int("paths", testsize.Of(60, 1200), "of how many metered modules TestRandomPathsAreBounded draws mutants")

// walker is one run.
type walker struct {
	*rand.Rand
	m        *module
	code     map[int]*walked // by function index
	seen     int64           // the charges to the meter at the last test
	charged  int64           // to the meter
	executed int64
	worst    int64 // executed, and not seen
	ahead    int64 // charged, and not executed
	steps    int
	failure  string
}

type walked struct {
	tokens  []token
	labels  []int
	counter int64
	ends    []int // of block, loop, if, else: the index of its end
	elses   []int
}

// activation is a function that runs.
type activation struct {
	f      *walked
	at     int
	c      int32
	blocks []int // indices of the tokens that begin open blocks
	arm    bool
}

func (w *walker) does(units int64) {
	w.executed += units
	if u := w.executed - w.seen; u > w.worst {
		if w.worst = u; u > maxWork {
			w.failure = fmt.Sprintf("%d units that no test has seen", u)
		}
	}
}

// pays charges the meter. Nothing is to be charged long before it is executed: tests would not ask for the time until
// then. Earlier passes charged the way back of recursion on the way down.
func (w *walker) pays(units int64) {
	w.charged += units
	if u := w.charged - w.executed; u > w.ahead {
		if w.ahead = u; u > maxAhead+maxLeaf {
			w.failure = fmt.Sprintf("%d units are charged before they are executed", u)
		}
	}
}

func (w *walker) test() { w.seen = w.charged }

func (m *module) walkedOf(f *function) *walked {
	r := reader{source: m.source[:f.end], at: f.start}
	locals := 0
	for range r.u32() {
		locals += r.u32()
		r.byte()
	}
	c := &walked{counter: none}
	for r.err == nil && r.at < f.end {
		t := r.token()
		c.tokens = append(c.tokens, t)
		if t.op == opLoop {
			c.counter = int64(m.types[f.typ].params + locals - 1)
		}
	}
	c.labels = r.labels
	c.ends, c.elses = make([]int, len(c.tokens)), make([]int, len(c.tokens))
	var open []int
	for n, t := range c.tokens {
		switch t.op {
		case opBlock, opLoop, opIf:
			open = append(open, n)
		case opElse:
			if len(open) == 0 {
				return nil
			}
			c.elses[open[len(open)-1]] = n
		case opEnd:
			if len(open) == 0 {
				return c
			}
			top := open[len(open)-1]
			c.ends[top] = n
			if e := c.elses[top]; e > 0 {
				c.ends[e] = n
			}
			open = open[:len(open)-1]
		}
	}
	return nil
}

// run follows a path from a function to its end. It reports whether it ended.
func (w *walker) run(index, limit int) bool {
	var stack []*activation
	enter := func(index int) {
		if f := w.code[index]; f != nil {
			stack = append(stack, &activation{f: f})
		}
	}
	enter(index)
	bias := w.IntN(4)
	pin := map[*token]int{}
	draw := func(t *token, n int) int { // sites mostly repeat their last choice
		if v, ok := pin[t]; ok && v < n && w.IntN([]int{2, 8, 64, 1024}[bias]) != 0 {
			return v
		}
		pin[t] = w.IntN(n)
		return pin[t]
	}
	for len(stack) > 0 && w.failure == "" {
		if w.steps++; w.steps > limit || len(stack) > 20000 {
			return false
		}
		a := stack[len(stack)-1]
		f := a.f
		if a.at >= len(f.tokens) {
			stack = stack[:len(stack)-1]
			continue
		}
		rest, t := f.tokens[a.at:], &f.tokens[a.at]
		take := func(p pattern) ([3]int64, bool) {
			found, ok := w.m.match(rest, p, f.counter)
			if ok {
				a.at += len(p)
			}
			return found, ok
		}
		branch := func(label int) {
			n := len(a.blocks) - 1 - label
			if n < 0 {
				a.at = len(f.tokens)
				return
			}
			target := a.blocks[n]
			a.blocks = a.blocks[:n+1]
			if f.tokens[target].op == opLoop {
				a.at = target + 1
				return
			}
			a.blocks = a.blocks[:n]
			a.at = f.ends[target] + 1
		}
		if t.op == opGlobalGet && (t.a == int64(w.m.meter) || t.a == int64(w.m.depth)) {
			if found, ok := take(handOver); ok && f.counter != none {
				w.pays(int64(uint32(a.c + int32(found[0]))))
				a.c = 0
			} else if _, ok := take(settle); ok && f.counter != none {
				w.pays(int64(uint32(a.c)))
			} else if found, ok := take(charge); ok {
				w.pays(found[0])
			} else if _, ok := take(tested); ok {
				w.test()
			} else if _, ok := take(descend); ok {
			} else if _, ok := take(ascend); ok {
			} else {
				w.failure = fmt.Sprintf("unexpected code: token %d at %#x of %d, counter %d: %v", a.at, t.at, len(f.tokens), f.counter, f.tokens)
			}
			continue
		}
		if f.counter != none && t.op == opLocalGet && t.a == f.counter {
			arm := a.arm
			if found, ok := take(count); ok {
				a.c += int32(found[0])
				continue
			}
			if found, ok := take(head); ok {
				if a.c >= int32(found[0]) {
					w.pays(int64(uint32(a.c)))
					a.c = 0
					w.test()
				}
				continue
			}
			found, ok := take(back)
			if !ok {
				if found, ok = take(backTaken); ok {
					found[1]++
				}
			}
			if ok {
				if !arm {
					w.does(1)
				}
				a.arm = false
				if a.c < int32(found[0]) {
					branch(int(found[1]) - 1)
				} else {
					branch(int(found[2]))
				}
				continue
			}
		}
		arm := a.arm
		a.arm = t.op == opIf || arm && t.op == opNop
		a.at++
		switch t.op {
		case opBlock, opLoop:
			a.blocks = append(a.blocks, a.at-1)
		case opIf:
			w.does(1)
			if len(rest) > 4 && rest[1].op == opLocalGet && rest[2].op == opBrTable && rest[3].op == opEnd && rest[4].op == opBr {
				a.at += 4
				a.arm = false
				labels := f.labels[rest[2].a:rest[2].b]
				if n := draw(t, len(labels)+1); n == len(labels) {
					branch(int(rest[4].a))
				} else {
					branch(labels[n] - 1)
				}
				continue
			}
			begin := a.at - 1
			switch {
			case draw(t, 2) == 0:
				a.blocks = append(a.blocks, begin)
			case f.elses[begin] > 0:
				a.blocks = append(a.blocks, begin)
				a.at = f.elses[begin] + 1
				a.arm = false
			default:
				a.at = f.ends[begin] + 1
				a.arm = false
			}
		case opElse: // the first arm ends
			top := a.blocks[len(a.blocks)-1]
			a.blocks = a.blocks[:len(a.blocks)-1]
			a.at = f.ends[top] + 1
		case opEnd:
			if len(a.blocks) > 0 {
				a.blocks = a.blocks[:len(a.blocks)-1]
			}
		case opBr:
			if !arm {
				w.does(1)
			}
			branch(int(t.a))
		case opBrIf:
			w.does(1)
			if draw(t, 2) == 0 {
				branch(int(t.a))
			}
		case opBrTable:
			w.does(1)
			labels := f.labels[t.a:t.b]
			branch(labels[draw(t, len(labels))])
		case opReturn:
			w.does(1)
			a.at = len(f.tokens)
		case opUnreachable:
			w.does(1)
			return false
		case opCall:
			name := w.m.added[int(t.a)]
			switch {
			case operations[name].op != "":
				w.does(1)
				n := int64(w.IntN(4096 * (1 + 4*w.IntN(2))))
				for ; n > 4096; n -= 4096 {
					w.pays(4096)
					w.test()
					w.does(4096)
				}
				w.pays(n)
				w.test()
				w.does(n)
			case name == "grow":
				a.at++
				w.pays(4096)
				w.test()
				w.does(4096)
			default:
				w.does(1)
				enter(int(t.a))
			}
		case opCallIndirect:
			w.does(1)
			if members := w.m.types[w.m.types[t.a].same].members; len(members) > 0 {
				enter(w.m.functions[members[draw(t, len(members))]].index)
			}
		default:
			w.does(1)
		}
	}
	return w.failure == ""
}

// readModule returns a module as the verifier reads it, or nil.
func readModule(source []byte) *module {
	m := &module{reader: reader{source: source}, meter: none, depth: none, refill: none, typed: map[string]int{}}
	if m.sections(); m.err != nil {
		return nil
	}
	m.collect()
	return m
}

// explore follows paths through a module that Verify accepts.
func explore(source []byte, seed uint64, steps int) (worst int64, ended int, failure string) {
	m := readModule(source)
	if m == nil {
		return 0, 0, "it cannot be read"
	}
	code := map[int]*walked{}
	for n := range m.functions {
		f := &m.functions[n]
		if m.added[f.index] == "" {
			if code[f.index] = m.walkedOf(f); code[f.index] == nil {
				return 0, 0, ""
			}
		}
	}
	for round := range uint64(6) {
		w := &walker{Rand: rand.New(rand.NewPCG(seed, round)), m: m, code: code}
		finished := w.run(m.outside[int(round)%len(m.outside)], steps)
		worst = max(worst, w.worst)
		if w.failure != "" {
			return worst, ended, w.failure
		}
		if finished {
			ended++
			if w.charged != w.executed {
				return worst, ended, fmt.Sprintf("charged %d, executed %d", w.charged, w.executed)
			}
		}
	}
	return worst, ended, ""
}

// No path that a walker finds through a module that Verify accepts, metered or changed after that, exceeds the bound.
func TestRandomPathsAreBounded(t *testing.T) {
	modules, mutants, accepted, worst, ended := 0, 0, 0, int64(0), 0
	for seed := uint64(0); modules < *pathsOf && !t.Failed(); seed++ {
		r := rand.New(rand.NewPCG(seed, 3))
		source := drawn(r)
		d, err := wasm.Inspect(source)
		if err != nil {
			t.Fatal(seed, err)
		}
		analysis, err := wasm.Validate(source, d)
		if err != nil {
			continue
		}
		done, err := wasm.Rewrite(t.Context(), source, analysis, wasm.Passes{Meter: true, Depth: r.IntN(2) == 0, Globals: true, Data: true, Fork: true})
		if err != nil {
			continue
		}
		modules++
		current := done.Source
		for n := range 30 {
			if err := Verify(t.Context(), current); err != nil {
				if n == 0 {
					t.Fatalf("seed %d: %v", seed, err)
				}
				current = done.Source
			} else {
				if n > 0 {
					accepted++
				}
				w, e, failure := explore(current, seed, 60_000)
				worst, ended = max(worst, w), ended+e
				if failure != "" {
					t.Errorf("seed %d, mutant %d: %s\n%x", seed, n, failure, current)
					break
				}
			}
			mutants++
			if next := mutate(r, current); next != nil {
				current = next
			}
		}
	}
	t.Logf("%d modules, %d mutants, %d of them accepted, %d runs ended, at most %d units unseen", modules, mutants, accepted, ended, worst)
	if !t.Failed() && modules >= 60 {
		assert.Greater(t, accepted, modules, "control: mutants that Verify accepts")
		assert.Greater(t, ended, 10*modules, "control: runs that end")
		assert.Greater(t, worst, int64(256), "control: units unseen")
	}
}
