package wasm

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A builder of modules by hand. Parts are byte strings that concat puts together.

const magic = "\x00asm\x01\x00\x00\x00"

func module(sections ...[]byte) []byte {
	return concat(append([][]byte{[]byte(magic)}, sections...)...)
}

func concat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func raw(bytes ...byte) []byte { return bytes }

// leb is an unsigned integer in LEB128.
func leb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// name encodes a name, or any bytes, after their number.
func name(text string) []byte { return append(leb(len(text)), text...) }

// section is a section with the right size.
func section(id SectionID, content ...[]byte) []byte {
	joined := concat(content...)
	return concat(raw(byte(id)), leb(len(joined)), joined)
}

// vector is a vector with the right count.
func vector(elements ...[]byte) []byte {
	return concat(leb(len(elements)), concat(elements...))
}

// repeat is a vector of equal elements.
func repeat(n int, element ...byte) []byte {
	return concat(leb(n), slices.Repeat(element, n))
}

func custom(title string, content ...[]byte) []byte {
	return section(SectionCustom, name(title), concat(content...))
}

// body is a function body with the right size; its end is added.
func body(locals []byte, instructions ...byte) []byte {
	content := concat(locals, instructions, raw(opEnd))
	return concat(leb(len(content)), content)
}

// Common parts.
var (
	emptyType  = raw(0x60, 0, 0)
	noLocals   = raw(0)
	claim      = raw(0xff, 0xff, 0xff, 0xff, 0x0f) // 4294967295
	i32Zero    = raw(opI32Const, 0, opEnd)
	oneType    = section(SectionType, vector(emptyType))
	oneFunc    = section(SectionFunction, vector(leb(0)))
	oneBody    = section(SectionCode, vector(body(noLocals)))
	oneMemory  = section(SectionMemory, vector(raw(0, 1)))
	oneTable   = section(SectionTable, vector(raw(0x70, 0, 1)))
	importFunc = concat(name("env"), name("f"), raw(0, 0))
)

// everything has each section once, and custom sections around them.
func everything() []byte {
	return module(
		custom("first", raw(1, 2, 3)),
		section(SectionType, vector(emptyType, raw(0x60, 2, byte(I32), byte(F64), 1, byte(I64)))),
		section(SectionImport, vector(
			concat(name("wasi_snapshot_preview1"), name("fd_write"), raw(0, 1)),
			concat(name("env"), name("table"), raw(1, 0x6f, 1, 2, 3)),
			concat(name("env"), name("global"), raw(3, byte(V128), 1)),
			concat(name("wasi_snapshot_preview1"), name("fd_read"), raw(0, 0)),
		)),
		section(SectionFunction, vector(leb(0), leb(1))),
		section(SectionTable, vector(raw(0x70, 1, 1, 9))),
		section(SectionMemory, vector(raw(1, 2, 0x80, 2))),
		section(SectionGlobal, vector(
			concat(raw(byte(I32), 1), raw(opI32Const, 0x7f, opEnd)),
			concat(raw(byte(I64), 0), raw(opI64Const, 0x80, 1, opEnd)),
			concat(raw(byte(F32), 0), raw(opF32Const, 1, 2, 3, 4, opEnd)),
			concat(raw(byte(F64), 0), raw(opF64Const, 1, 2, 3, 4, 5, 6, 7, 8, opEnd)),
			concat(raw(byte(V128), 0), raw(opVector, opV128Const), make([]byte, 16), raw(opEnd)),
			concat(raw(byte(FuncRef), 0), raw(opRefNull, 0x70, opEnd)),
			concat(raw(byte(FuncRef), 0), raw(opRefFunc, 0, opEnd)),
			concat(raw(byte(V128), 0), raw(opGlobalGet, 0, opEnd)),
		)),
		section(SectionExport, vector(
			concat(name("_start"), raw(0, 2)),
			concat(name("read"), raw(0, 1)),
			concat(name("write"), raw(0, 0)),
			concat(name("run"), raw(0, 3)),
			concat(name("table"), raw(1, 1)),
			concat(name("memory"), raw(2, 0)),
			concat(name("global"), raw(3, 8)),
		)),
		section(SectionStart, leb(2)),
		section(SectionElement, vector(
			concat(leb(0), i32Zero, vector(leb(0), leb(1))),
			concat(leb(1), raw(0), vector(leb(0))),
			concat(leb(2), leb(1), i32Zero, raw(0), vector(leb(0))),
			concat(leb(3), raw(0), vector(leb(0))),
			concat(leb(4), i32Zero, vector(raw(opRefFunc, 0, opEnd))),
			concat(leb(5), raw(0x70), vector(raw(opRefNull, 0x70, opEnd))),
			concat(leb(6), leb(1), i32Zero, raw(0x70), vector()),
			concat(leb(7), raw(0x6f), vector(raw(opRefNull, 0x6f, opEnd))),
		)),
		section(SectionDataCount, leb(3)),
		section(SectionCode, vector(
			body(noLocals),
			body(vector(concat(leb(300), raw(byte(I32))), concat(leb(2), raw(byte(V128)))), opI64Const, 0),
		)),
		custom("middle"),
		section(SectionData, vector(
			concat(leb(0), i32Zero, name("zero")),
			concat(leb(1), name("passive")),
			concat(leb(2), leb(0), i32Zero, name("")),
		)),
		custom("name",
			raw(0), name(string(name("m"))),
			raw(1), name(string(vector(concat(leb(0), name("f")), concat(leb(1), name("g"))))),
			raw(2), name(string(vector(concat(leb(0), vector(concat(leb(0), name("l"))))))),
			raw(9), name("anything"),
		),
		custom("first"),
	)
}

// printed returns a module as text: its imports, declarations, exports and bodies.
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
