package programs

import (
	"fmt"
	"math"
	"strings"
)

// mostShown is the size of the largest data segment whose bytes are shown.
const mostShown = 256

// String returns the program in a form like the text format, with $b0, $b1, … for labels and
// functions by number, imports included.
func (p *Program) String() string {
	var text strings.Builder
	for _, library := range p.Libraries {
		fmt.Fprintf(&text, ";; library %q\n%s", library.Name, library.module())
	}
	return text.String() + p.module()
}

// module returns the program without its libraries.
func (p *Program) module() string {
	w := &printer{names: map[*Node]string{nil: "$function"}}
	w.line(0, ";; seed %d, %s, call %s %s", p.Seed, p.Shape, p.Before, p.Entry)
	for n, i := range p.Imports {
		w.line(0, "(import %q %q (func %d%s))", i.Module, i.Name, n, i.Type)
	}
	w.line(0, "(memory %d %d)", p.Pages, p.MostPages)
	w.line(0, "(table 0 %d %d funcref) (elem (i32.const 0) %d)", len(p.Slots), len(p.Slots), p.Slots)
	w.line(0, "(table 1 %d %d funcref)", spareElements, mostSpare)
	for _, s := range p.Elements {
		w.line(0, "(elem func %d)", s.Functions)
	}
	for _, s := range p.Data {
		if len(s.Bytes) > mostShown {
			w.line(0, "(data ;; at %d\n  %d bytes)", s.Offset, len(s.Bytes))
			continue
		}
		w.line(0, "(data ;; at %d\n  %q)", s.Offset, s.Bytes)
	}
	for n, g := range p.Globals {
		w.line(0, "(global %d (mut %s) %d)", n, g.Type, int64(g.Value))
	}
	if p.Progress >= 0 {
		w.line(0, "(export %q (global %d))", ProgressName, p.Progress)
	}
	for _, e := range p.Exports {
		w.line(0, "(export %q (func %d))", e.Name, e.Function)
	}
	if p.Start >= 0 {
		w.line(0, "(start %d)", p.Start)
	}
	for n, f := range p.Functions {
		w.line(0, "(func %d%s (local%s)", n+len(p.Imports), f.Type, typeNames(f.Locals))
		w.code(1, f.Body)
		w.line(0, ")")
	}
	return w.out.String()
}

func (t Type) String() string {
	return map[Type]string{I32: "i32", I64: "i64", F64: "f64", funcref: "funcref"}[t]
}

func (s Signature) String() (text string) {
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

type printer struct {
	out   strings.Builder
	names map[*Node]string // of labels
}

func (w *printer) line(depth int, format string, args ...any) {
	fmt.Fprintf(&w.out, strings.Repeat("  ", depth)+format+"\n", args...)
}

func (w *printer) name(n *Node) string {
	if w.names[n] == "" {
		w.names[n] = fmt.Sprintf("$b%d", len(w.names)-1)
	}
	return w.names[n]
}

// code writes one instruction on each line, preceded by those that compute its operands.
func (w *printer) code(depth int, nodes code) {
	for _, n := range nodes {
		w.code(depth, n.Args)
		w.line(depth, "%s%s", n.Op.name, w.immediates(n))
		if n.Op.immediates != "b" {
			continue
		}
		w.code(depth+1, n.Body)
		if n.HasElse {
			w.line(depth, "else")
			w.code(depth+1, n.Else)
		}
		w.line(depth, "end")
	}
}

func (w *printer) immediates(n *Node) (text string) {
	for _, kind := range n.Op.immediates {
		switch kind {
		case 'v', 'i':
			text += fmt.Sprintf(" %d", n.Value)
		case 's':
			text += fmt.Sprintf(" %d", n.Second)
		case 'f':
			text += fmt.Sprintf(" %v", math.Float64frombits(uint64(n.Value)))
		case 't':
			text += n.Block.String()
		case 'l':
			for _, target := range n.Targets {
				text += " " + w.name(target)
			}
		case 'b':
			text += " " + w.name(n) + n.Block.String()
			if n.endless {
				text += " ;; endless"
			}
		}
	}
	return text
}
