package wasm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// printed is a module as text: what it imports, declares and exports, and its bodies.
func printed(t *testing.T, source []byte) string {
	t.Helper()
	m := inspected(t, source)
	var out strings.Builder
	functions := 0
	for _, i := range m.Imports {
		fmt.Fprintf(&out, "import %s %q %q\n", i.Kind, i.Module, i.Name)
		if i.Kind == ExternFunction {
			functions++
		}
	}
	for _, g := range m.Globals {
		fmt.Fprintf(&out, "global %s, mutable %t\n", g.Type, g.Mutable)
	}
	for _, e := range m.Exports {
		fmt.Fprintf(&out, "export %s %d %q\n", e.Kind, e.Index, e.Name)
	}
	if m.Start.Present {
		fmt.Fprintf(&out, "start %d\n", m.Start.Function)
	}
	for n, f := range m.Functions {
		fmt.Fprintf(&out, "function %d: %s, %d locals\n", functions+n, m.Types[f.Type], f.Locals)
		printBody(t, &out, source, m, f)
	}
	return out.String()
}

func printBody(t *testing.T, out *strings.Builder, source []byte, m *Module, f Function) {
	t.Helper()
	d := &decoder{reader: reader{source: source[:f.Offset+f.Size], at: f.Offset}, features: Features{TailCalls: true}}
	d.locals(f.Locals)
	depth := 1
	for d.left() > 0 {
		var in instruction
		d.next(&in)
		require.NoError(t, d.failure())
		if in.opcode == opEnd || in.opcode == opElse {
			depth--
		}
		fmt.Fprintf(out, "%s%s%s\n", strings.Repeat("  ", depth), in.operator.name, printImmediates(d, m, &in))
		switch in.opcode {
		case opBlock, opLoop, opIf, opElse:
			depth++
		}
	}
}

func printImmediates(d *decoder, m *Module, in *instruction) string {
	switch in.operator.immediates {
	case immediateIndex:
		return fmt.Sprintf(" %d", in.index)
	case immediateTwoIndices:
		return fmt.Sprintf(" %d %d", in.index, in.second)
	case immediateI32, immediateI64:
		return fmt.Sprintf(" %d", signed(d.source[in.at+1:in.end]))
	case immediateBlock:
		switch {
		case in.block.isIndex:
			return " " + m.Types[in.block.index].String()
		case in.block.result != 0:
			return " " + in.block.result.String()
		}
	case immediateLabels:
		text, labels := "", d.again(in)
		for range in.index + 1 {
			text += fmt.Sprintf(" %d", labels.u32("a label"))
		}
		return text
	case immediateIndexZero:
		return fmt.Sprintf(" %d 0", in.index)
	}
	return ""
}

// signed decodes a signed integer in LEB128.
func signed(bytes []byte) int64 {
	var n int64
	for i, b := range bytes {
		n |= int64(b&0x7f) << (7 * i)
	}
	if last := bytes[len(bytes)-1]; last&0x40 != 0 && 7*len(bytes) < 64 {
		n |= -1 << (7 * len(bytes))
	}
	return n
}
