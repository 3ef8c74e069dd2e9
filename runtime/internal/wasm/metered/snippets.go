package metered

import (
	"strconv"
	"strings"
)

// pattern is a sequence of instructions. An operand is a number, or a name. A name represents a value that the context
// determines, or one to be found.
type pattern []token

// Names of instructions in patterns: those of the text format, shortened.
var mnemonics = map[string]int32{
	"unreachable": opUnreachable, "block": opBlock, "loop": opLoop, "if": opIf, "else": opElse, "end": opEnd,
	"br": opBr, "br_if": opBrIf, "return": opReturn, "call": opCall,
	"get": opLocalGet, "set": opLocalSet, "tee": opLocalTee, "gget": opGlobalGet, "gset": opGlobalSet,
	"i32": opI32Const, "i64": opI64Const, "mcopy": opMemoryCopy, "mfill": opMemoryFill, "minit": opMemoryInit,
	"tcopy": opTableCopy, "tfill": opTableFill, "tinit": opTableInit,
	"lt_s": opI32LtS, "lt_u": opI32LtU, "gt_u": opI32GtU, "le_u": opI32LeU, "add": opI32Add, "sub": opI32Sub,
	"sub64": opI64Sub, "shr64": opI64ShrU, "ge64": opI64GeS, "wide": opI64ExtendU,
}

// Named operands. Their values in tokens are far from real ones.
const (
	isNumber   = iota - 1<<40 // a constant, which is returned
	isLabel                   // a label, which is returned
	isRefill                  // the import
	isMeter                   // the globals
	isDepth                   //
	isCounter                 // the local counter
	isMore                    // the added functions
	isTake                    //
	isFork                    // imports of the fork
	isFunction                // any function
)

var operands = map[string]int64{"N": isNumber, "L": isLabel, "REFILL": isRefill, "METER": isMeter, "DEPTH": isDepth,
	"C":    isCounter,
	"MORE": isMore, "TAKE": isTake, "FORK": isFork, "F": isFunction}

// parse converts text to a pattern.
func parse(text string) pattern {
	var p pattern
	for _, word := range strings.Fields(text) {
		if op, known := mnemonics[word]; known {
			t := token{op: op}
			if op >= opBlock && op <= opIf {
				t.a = noType
			}
			p = append(p, t)
		} else if operand, known := operands[word]; known {
			p[len(p)-1].a = operand
		} else {
			p[len(p)-1].a, _ = strconv.ParseInt(word, 10, 64)
		}
	}
	return p
}

// The sequences that access the counters.
var (
	// A test calls more if the counter is negative.
	test = "gget METER i64 0 ge64 if else call MORE end "

	charge    = parse("gget METER i64 N sub64 gset METER")
	tested    = parse(test)
	count     = parse("get C i32 N add set C")
	handOver  = parse("gget METER get C i32 N add wide sub64 gset METER i32 0 set C")
	settle    = parse("gget METER get C wide sub64 gset METER")
	head      = parse("get C i32 N lt_s if else get C call TAKE i32 0 set C end") // of a loop
	back      = parse("get C i32 N lt_s if br L end br L")                        // to a loop
	backTaken = parse("get C i32 N lt_s br_if L br L")                            // the same with values
	descend   = parse("gget DEPTH i32 N le_u if else i32 -1 gset DEPTH unreachable end gget DEPTH i32 N add gset DEPTH")
	ascend    = parse("gget DEPTH i32 N sub gset DEPTH")
)

// The added functions. Those that copy and fill do the work of an instruction in pieces of maxPiece
// units, each with a charge and a test.
var templates = map[string]pattern{
	"more":  parse("gget METER call REFILL gset METER end"),
	"take":  parse("gget METER get 0 wide sub64 gset METER " + test + "end"),
	"grow":  parse("gget METER i64 4096 sub64 gset METER " + test + "end"),
	"mfill": operations["mfill"].pattern(),
	"mcopy": operations["mcopy"].pattern(),
	"minit": operations["minit"].pattern(),
	"tfill": operations["tfill"].pattern(),
	"tcopy": operations["tcopy"].pattern(),
	"tinit": operations["tinit"].pattern(),
	// These let a host save and restore the stack. They loop only through the host.
	"read":  parse("loop get 0 call FORK br_if 0 end get 0 get 1 get 2 get 3 call F end"),
	"enter": parse("call FORK if else call F end end"),
}

// operations are the instructions whose time depends on a length. A unit is 16 bytes of memory or an
// element of a table.
var operations = map[string]pieces{
	"mfill": {op: "mfill", length: "65536", units: "i64 4 shr64 "},
	"mcopy": {op: "mcopy", length: "65536", units: "i64 4 shr64 ", moves: true, overlaps: true},
	"minit": {op: "minit", length: "65536", units: "i64 4 shr64 ", moves: true},
	"tfill": {op: "tfill", length: "4096"},
	"tcopy": {op: "tcopy", length: "4096", moves: true, overlaps: true},
	"tinit": {op: "tinit", length: "4096", moves: true},
}

// pieces is an operation that is divided into pieces.
type pieces struct {
	op       string
	length   string // of a piece
	units    string // divides a length by the length that costs one unit
	moves    bool   // its second parameter is where to read from
	overlaps bool   // it may have to proceed from the back
}

// pattern returns the code. An operation that is out of bounds traps before anything is written (§4.4.6, §4.4.7). An
// operation of length 0 traps just where its range ends, and one whose range ends beyond 32 bits always does. So no
// other operation is longer than a piece.
func (p pieces) pattern() pattern {
	rest := "gget METER get 2 wide " + p.units + "sub64 gset METER " + test + "get 0 get 1 get 2 " + p.op + " "
	overflow := func(start string) string {
		return "get " + start + " get 2 add get 2 lt_u if i32 -1 get 1 i32 -1 " + p.op + " unreachable end "
	}
	piece := "gget METER i64 4096 sub64 gset METER " + test
	again := "get 2 i32 " + p.length + " sub tee 2 i32 " + p.length + " gt_u br_if 0 end "
	advance := func(start string) string { return "get " + start + " i32 " + p.length + " add set " + start + " " }

	check, source := overflow("0"), "get 1 "
	forwards := "loop " + piece + "get 0 get 1 i32 " + p.length + " " + p.op + " " + advance("0")
	if p.moves {
		check += overflow("1")
		source = "get 1 get 2 add "
		forwards += advance("1")
	}
	check += "get 0 get 2 add " + source + "i32 0 " + p.op + " "
	forwards += again
	backwards := "loop " + piece + "get 0 get 2 add i32 " + p.length + " sub get 1 get 2 add i32 " + p.length +
		" sub i32 " + p.length + " " + p.op + " " + again

	all := forwards
	if p.overlaps {
		all = "get 0 get 1 le_u if " + forwards + "else " + backwards + "end "
	}
	return parse("get 2 i32 " + p.length + " le_u if " + rest + "return end " + check + all + rest + "end")
}

// match compares the beginning of tokens with a pattern, and returns the operands that the pattern
// leaves open.
func (m *module) match(tokens []token, p pattern, counter int64) (found [3]int64, ok bool) {
	if len(tokens) < len(p) {
		return found, false
	}
	open := 0
	for n, want := range p {
		got := tokens[n]
		if got.op != want.op {
			return found, false
		}
		switch want.a {
		case isNumber, isLabel:
			found[open], ok = got.a, true
			open++
		case isRefill:
			ok = got.a == int64(m.refill)
		case isMeter:
			ok = got.a == int64(m.meter)
		case isDepth:
			ok = m.depth != none && got.a == int64(m.depth)
		case isCounter:
			ok = got.a == counter
		case isMore:
			ok = m.added[int(got.a)] == "more"
		case isTake:
			ok = m.added[int(got.a)] == "take"
		case isFork:
			ok = m.isFork(int(got.a))
		case isFunction:
			found[open] = got.a
			ok = got.a != int64(m.refill) && m.added[int(got.a)] == ""
		default:
			ok = got.a == want.a
		}
		if !ok {
			return found, false
		}
	}
	return found, true
}

func (m *module) isFork(index int) bool {
	for _, imported := range m.fork {
		if imported == index {
			return true
		}
	}
	return false
}

// identify finds the added functions by their code, and checks that they are reached only by calls.
func (m *module) identify() {
	m.added = map[int]string{}
	const longest = 200 // tokens of the longest template and more
	var tokens []token
	var followed []int // callees of added functions that are not added themselves
	// A test is a call of more, so that must be identified first.
	for _, names := range [][]string{{"more"},
		{"take", "grow", "mfill", "mcopy", "minit", "tfill", "tcopy", "tinit", "read", "enter"}} {
		for _, f := range m.functions {
			if f.end-f.start > 4*longest {
				continue
			}
			tokens = m.tokens(&f, tokens[:0])
			for _, name := range names {
				if m.added[f.index] != "" {
					break
				}
				m.added[f.index] = name // set before matching, since it must not call itself
				found, ok := m.match(tokens, templates[name], none)
				if !ok || len(tokens) != len(templates[name]) {
					delete(m.added, f.index)
				} else if name == "read" || name == "enter" {
					m.outside = append(m.outside, int(found[0]))
					followed = append(followed, int(found[0]))
				}
			}
		}
	}
	for _, index := range followed { // only now are all added functions known
		if m.added[index] != "" || m.isFork(index) {
			m.fail("an added function calls another one instead of the module's own")
		}
	}
	for _, global := range m.shown {
		if global == m.meter || global == m.depth {
			m.fail("a counter is exported under another name")
		}
	}
	for _, index := range m.taken {
		if name := m.added[index]; index == m.refill || m.isFork(index) || name != "" && name != "enter" && name != "read" {
			m.fail("a reference leads to a function that was added")
		}
	}
}

// tokens reads a function's code.
func (m *module) tokens(f *function, tokens []token) []token {
	r := reader{source: m.source[:f.end], at: f.start}
	for range r.u32() {
		r.u32()
		r.skip(1)
	}
	for r.err == nil && r.at < f.end {
		tokens = append(tokens, r.token())
	}
	return tokens
}
