package programs

import (
	"fmt"
	"math"
	"strings"
)

// String returns the program in a form like the text format, with $b0, $b1 for labels, and
// $f0, $f1 for functions, imports included.
func (p *Program) String() string {
	w := &printer{names: map[*Node]string{}}
	w.line(0, ";; seed %d, %s, call %s %s", p.Seed, p.Shape, p.Before, p.Entry)
	for n, i := range p.Imports {
		w.line(0, "(import %q %q (func $f%d%s))", i.Module, i.Name, n, i.Type)
	}
	w.line(0, "(memory %d %d)", p.Pages, mostPages)
	w.line(0, "(table $t0 %d %d funcref) (elem (i32.const 0)%s)", len(p.Slots), len(p.Slots), functionNames(p.Slots))
	w.line(0, "(table $t1 %d %d funcref)", spareElements, mostSpare)
	for _, s := range p.Elements {
		w.line(0, "(elem func%s)", functionNames(s.Functions))
	}
	for _, s := range p.Data {
		w.line(0, "(data ;; at %d\n  %q)", s.Offset, s.Bytes)
	}
	for n, g := range p.Globals {
		w.line(0, "(global $g%d (mut %s) %d)", n, g.Type, int64(g.Value))
	}
	if p.Start >= 0 {
		w.line(0, "(start $f%d)", p.Start)
	}
	for n, f := range p.Functions {
		var exported string
		for _, export := range p.Exports {
			if export.Function == n+len(p.Imports) {
				exported += fmt.Sprintf(" (export %q)", export.Name)
			}
		}
		w.line(0, "(func $f%d%s%s (local%s)", n+len(p.Imports), exported, f.Type, typeNames(f.Locals))
		w.nodes(1, f.Body)
		w.line(0, ")")
	}
	return w.out.String()
}

func (t Type) String() string {
	return map[Type]string{I32: "i32", I64: "i64", F64: "f64", funcref: "funcref"}[t]
}

func (s Signature) String() string {
	var text string
	if len(s.Params) > 0 {
		text += " (param" + typeNames(s.Params) + ")"
	}
	if len(s.Results) > 0 {
		text += " (result" + typeNames(s.Results) + ")"
	}
	return text
}

func typeNames(types []Type) (names string) {
	for _, t := range types {
		names += " " + t.String()
	}
	return names
}

func functionNames(functions []int) (names string) {
	for _, f := range functions {
		names += fmt.Sprintf(" $f%d", f)
	}
	return names
}

type printer struct {
	out   strings.Builder
	names map[*Node]string
}

func (w *printer) line(depth int, format string, args ...any) {
	fmt.Fprintf(&w.out, strings.Repeat("  ", depth)+format+"\n", args...)
}

func (w *printer) nodes(depth int, nodes []*Node) {
	for _, n := range nodes {
		if n.Op.immediate == blockType {
			w.block(depth, n)
		} else {
			w.line(depth, "%s", w.inline(n))
		}
	}
}

func (w *printer) name(n *Node) string {
	if n == nil {
		return "$function"
	}
	if w.names[n] == "" {
		w.names[n] = fmt.Sprintf("$b%d", len(w.names))
	}
	return w.names[n]
}

func (w *printer) block(depth int, n *Node) {
	for _, arg := range n.Args {
		w.nodes(depth, []*Node{arg})
	}
	var mark string
	if n.endless {
		mark = " ;; endless"
	}
	w.line(depth, "%s %s%s%s", n.Op.name, w.name(n), n.Block, mark)
	w.nodes(depth+1, n.Body)
	if n.HasElse {
		w.line(depth, "else")
		w.nodes(depth+1, n.Else)
	}
	w.line(depth, "end")
}

// inline folds an instruction and its operands into one line, but for blocks within.
func (w *printer) inline(n *Node) string {
	text := n.Op.name
	switch n.Op.immediate {
	case constant32, constant64:
		text += fmt.Sprintf(" %d", n.Value)
	case constantF64:
		text += fmt.Sprintf(" %v", math.Float64frombits(uint64(n.Value)))
	case index, indexAndNul:
		text += fmt.Sprintf(" %s%d", map[*Op]string{callOp: "$f", refFunc: "$f", globalGet: "$g", globalSet: "$g"}[n.Op], n.Value)
	case indexes:
		text += fmt.Sprintf(" %d %d", n.Value, n.Second)
	case access:
		text += fmt.Sprintf(" offset=%d", n.Value)
	case indirect:
		text += n.Block.String()
	case label, labels:
		for _, target := range n.Targets {
			text += " " + w.name(target)
		}
	case blockType:
		inner := &printer{names: w.names}
		inner.block(0, n)
		return "(" + strings.Join(strings.Fields(inner.out.String()), " ") + ")"
	}
	for _, arg := range n.Args {
		text += " " + w.inline(arg)
	}
	return "(" + text + ")"
}
