package programs

import "slices"

// Attack is a program that ends after it has executed some hundred million instructions. Nearly all of
// them are where a meter might charge and not test.
type Attack struct {
	Name string
	*Program
}

const (
	attackDepth = 70_000 // of recursion
	linkedDepth = 50_000 // of recursion in a module with a library, with which it shares the bound on the stack
	// A function may do without a test if it has few instructions, or few after its last call.
	leafLoads   = 57 // of a leaf: it has 63 instructions
	returnLoads = 55
	leafCalls   = 10
)

// The globals of attacks.
const (
	attackProgress = iota
	attackLeft
	attackLink
)

// The functions of attacks. The first is an import, of a library if there is one.
const (
	attackImport = iota
	attackEntry
	attackFirst
	attackSecond
)

// WayBackAttacks returns programs that recurse, and do their work on the way back.
func WayBackAttacks() []Attack {
	loads := code{follow(attackLink, returnLoads), increment(attackProgress)}
	fewer := code{follow(attackLink, returnLoads/3), increment(attackProgress)}
	callsDown := code{with(globalSet, attackLeft, decrement(globalGet, attackLeft)), call(attackFirst)}
	indirect := func(slot int) *Node { return &Node{Op: indirectOp, Args: code{number(slot)}} }
	return []Attack{
		{"leaves", attackOf(descending(call(attackFirst), slices.Repeat(code{call(attackSecond)}, 60)), attackLeaf())},
		{"no leaves", attackOf(descending(call(attackFirst), loads))},
		{"two functions", attackOf(descending(call(attackSecond), loads), descending(call(attackFirst), loads))},
		{"behind an early return", attackOf(&Function{Body: slices.Concat(code{returnIfNoneLeft()}, callsDown, loads)})},
		{"between two calls",
			attackOf(descending(call(attackFirst), slices.Concat(fewer, descending(call(attackFirst), fewer).Body)))},
		{"through a table", attackOf(descending(indirect(0), loads))},
		{"leaves through a table", attackOf(descending(call(attackFirst), leafCallsOf(indirect(1))), attackLeaf())},
		{"leaves of a library",
			attackOfDepth(linkedDepth, descending(call(attackFirst), leafCallsOf(call(attackImport)))).with("a", leafLibrary())},
		{"in a library",
			attackOf().with("a",
				attackOfDepth(linkedDepth, descending(call(attackFirst), leafCallsOf(call(attackSecond))), attackLeaf()))},
	}
}

// RowAttack returns a program that calls leaves one after another, without a loop.
func RowAttack() Attack {
	return Attack{"leaves in a row",
		attackOf(&Function{Body: slices.Repeat(code{call(attackSecond)}, 65_000)}, attackLeaf())}
}

// LibraryAttacks returns programs whose libraries do the work. Each loop itself does little.
func LibraryAttacks() []Attack {
	inner := attackOf().with("a", leafLibrary())
	inner.Functions[0] = attackLoop()
	between := attackOf().with("a", leafLibrary())
	between.Functions[0] = attackLoop()
	outer := attackOf().with("b", between)
	outer.Libraries = []Library{{"a", leafLibrary()}, {"b", between}}
	between.Libraries = nil
	return []Attack{{"a leaf in a loop", inner}, {"a leaf in a loop of another library", outer}}
}

// attackOf returns a program whose entry calls the first of the functions, or the import if there are
// none.
func attackOf(functions ...*Function) *Program { return attackOfDepth(attackDepth, functions...) }

func attackOfDepth(depth int, functions ...*Function) *Program {
	p := &Program{
		Shape: "command", Entry: "run", Exports: []Export{{"run", attackEntry}}, Start: -1, Pages: 1, MostPages: 1,
		Imports: []Import{{WASIModule, Yield, Signature{Results: []Type{I32}}}},
		Globals: []Global{{I32, 0}, {I32, 0}, {I32, 0}}, Progress: attackProgress,
	}
	entry := &Function{Body: code{call(attackImport)}}
	if len(functions) > 0 {
		entry.Body = code{with(globalSet, attackLeft, number(depth)), call(attackFirst)}
	}
	p.Functions = append([]*Function{entry}, functions...)
	for n := range functions {
		p.Slots = append(p.Slots, attackFirst+n)
	}
	return p
}

func (p *Program) with(name string, library *Program) *Program {
	library.Shape = "library"
	p.Libraries = []Library{{name, library}}
	p.Imports = []Import{{name, library.Entry, Signature{}}}
	return p
}

// leafLibrary returns a library that exports a leaf.
func leafLibrary() *Program {
	p := attackOf()
	p.Functions[0] = attackLeaf()
	return p
}

func attackLeaf() *Function {
	return &Function{Body: code{follow(attackLink, leafLoads), increment(attackProgress)}}
}

func leafCallsOf(n *Node) code { return slices.Repeat(code{n}, leafCalls) }

// attackLoop returns a function that calls its import many times.
func attackLoop() *Function {
	n := node(loopOp)
	n.Body = append(leafCallsOf(call(attackImport)), jumpTo(brIfOp, n, counted(0)))
	return &Function{Locals: []Type{I32}, Body: code{with(localSet, 0, number(50_000)), n}}
}

func returnIfNoneLeft() *Node {
	return either(node(i32Eqz, with(globalGet, attackLeft)), node(returnOp))
}

// descending returns a function that recurses by a call as long as it may, and then works.
func descending(again *Node, then code) *Function {
	left := node(i32GtS, with(globalGet, attackLeft), number(0))
	down := either(left, with(globalSet, attackLeft, decrement(globalGet, attackLeft)), again)
	return &Function{Body: append(code{down}, then...)}
}

// PaidUnits is the number of instructions that each function of [PaidAttacks] executes after its call. Nearly all are
// loads, each of the address that the one before it returned, so that no processor executes many of them at a time.
const PaidUnits = 4_000

// PaidAttacks returns programs with much work after calls, for which a meter might charge before the calls. Each
// program calls the host, with Observe, before that work begins. Its progress counts the functions that have done
// theirs.
func PaidAttacks() []Attack {
	const depth, functions = 10_000, 300
	work := code{follow(attackLink, PaidUnits-6), increment(attackProgress)}
	observe := call(attackImport, node(extend, with(globalGet, attackLeft)))
	deep := func(again *Node) *Function {
		left := node(i32GtS, with(globalGet, attackLeft), number(0))
		down := code{with(globalSet, attackLeft, decrement(globalGet, attackLeft)), again}
		return &Function{Body: code{either(node(i32Eqz, with(globalGet, attackLeft)), observe),
			either(left, append(down, work...)...)}}
	}
	var chain []*Function
	for n := range functions {
		chain = append(chain, &Function{Body: append(code{call(attackFirst + n + 1)}, work...)})
	}
	chain = append(chain, &Function{Body: code{observe}})
	attacks := []Attack{
		{"recursion", attackOfDepth(depth, deep(call(attackFirst)))},
		{"recursion through a table", attackOfDepth(depth, deep(&Node{Op: indirectOp, Args: code{number(0)}}))},
		{"a chain of functions", attackOf(chain...)},
	}
	for _, a := range attacks {
		a.Imports = []Import{{HostModule, Observe, Signature{Params: []Type{I64}}}}
	}
	return attacks
}
