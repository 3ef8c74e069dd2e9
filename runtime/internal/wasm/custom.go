package wasm

import "fmt"

// custom reads the name of a custom section (§5.5.3), and checks the one kind whose contents the
// specification defines.
func (i *inspection) custom(r *reader) {
	custom := Custom{
		Name:   r.name("the name of a custom section", i.bounds.NameBytes),
		Offset: i.section.Offset,
		Size:   i.section.End - i.section.Offset,
	}
	if r.err != nil {
		return
	}
	contents := r.part(r.left(), "a custom section")
	if custom.Name == "name" {
		contents.section = "name"
		contents.names()
		custom.Problem = contents.failure()
	}
	i.module.Custom = append(i.module.Custom, custom)
}

// Subsections of the name section (§7.4.1).
const (
	namesModule    = 0
	namesFunctions = 1
	namesLocals    = 2
)

// names checks the contents of a name section (§7.4.1). It skips subsections that core 2.0 does not
// define.
func (r *reader) names() {
	r.subsections(func(id byte, subsection *reader) {
		ignore := func(uint32, []byte) {}
		switch id {
		case namesModule:
			subsection.text("the name of the module")
		case namesFunctions:
			subsection.nameMap(ignore)
		case namesLocals: // for each function, a name map
			for range subsection.count("name maps", 2, subsection.left()) {
				subsection.u32("an index")
				if subsection.nameMap(ignore); subsection.err != nil {
					break
				}
			}
		default:
			return
		}
		subsection.end()
		r.err = subsection.err
	})
}

// subsections calls visit with each subsection of a name section.
func (r *reader) subsections(visit func(id byte, subsection *reader)) {
	for r.left() > 0 && r.err == nil {
		id := r.byte("the id of a subsection")
		subsection := r.part(r.size("a subsection"), "a subsection")
		visit(id, &subsection)
	}
}

// nameMap calls visit with each pair of an index and a name in a name map (§7.4.1).
func (r *reader) nameMap(visit func(index uint32, name []byte)) {
	for range r.count("names", 2, r.left()) {
		index, name := r.u32("an index"), r.text("a name")
		if r.err != nil {
			return
		}
		visit(index, name)
	}
}

// StripCustom returns a copy of a module without its custom sections, except those for which keep
// returns true. All other bytes are unchanged. Custom sections do not affect what a module does
// (§2.5).
//
// The module m must be the result of [Inspect] for source.
func StripCustom(source []byte, m *Module, keep func(name string) bool) []byte {
	stripped := make([]byte, 0, len(source))
	copied := 0
	for _, custom := range m.Custom {
		if keep(custom.Name) {
			continue
		}
		stripped = append(stripped, source[copied:custom.Offset]...)
		copied = custom.Offset + custom.Size
	}
	return append(stripped, source[copied:]...)
}

// maxFunctionName is the maximum length in bytes of a name that FunctionNames returns.
const maxFunctionName = 512

// FunctionNames returns function names from the "name" section (§7.4.1), by index in the function
// index space of the original module. They are meant for stack traces. Names are untrusted text,
// cut to at most 512 bytes, and may be the same for different functions. Names of functions that do
// not exist are left out, as are all names of a section with a Problem.
//
// The module m must be the result of [Inspect] for source.
func FunctionNames(source []byte, m *Module) map[uint32]string {
	functions := uint32(len(m.Functions)) + m.imported(ExternFunction)
	names := map[uint32]string{}
	for _, custom := range m.Custom {
		if custom.Name != "name" || custom.Problem != nil {
			continue
		}
		r := reader{source: source[:custom.Offset+custom.Size], at: custom.Offset + 1, section: custom.Name}
		r.size("the section")
		r.text("the name of a custom section")
		r.subsections(func(id byte, subsection *reader) {
			if id != namesFunctions {
				return
			}
			subsection.nameMap(func(index uint32, name []byte) {
				if index < functions {
					names[index] = string(shortened(name))
				}
			})
		})
	}
	return names
}

func shortened(name []byte) []byte {
	if len(name) <= maxFunctionName {
		return name
	}
	end := maxFunctionName
	for name[end]&0xc0 == 0x80 { // inside a character
		end--
	}
	return name[:end]
}

// functions reads the function section (§5.5.6): the types of the functions in the code section.
func (i *inspection) functions(r *reader) {
	i.module.Functions = vectorOf(r, "functions", 1, i.bounds.Functions,
		func() Function { return Function{Type: r.index("type", len(i.module.Types))} })
}

// code reads the code section (§5.5.13). It does not check instructions.
func (i *inspection) code(r *reader) {
	i.hasCode = true
	at := r.at
	bodies := r.count("functions", 3, i.bounds.Functions)
	if r.err == nil && bodies != len(i.module.Functions) {
		r.fail(ErrMalformed, at, "%s", mismatch(bodies, "bodies", len(i.module.Functions), "functions"))
	}
	locals := 0
	for n := range i.module.Functions {
		if r.err != nil {
			return
		}
		locals += i.body(r, &i.module.Functions[n])
		if locals > i.bounds.Locals {
			r.fail(ErrLimit, i.module.Functions[n].Offset, "the functions have more than %d locals together", i.bounds.Locals)
		}
	}
}

// body reads the position of a body and the number of its locals, which it returns.
func (i *inspection) body(r *reader, function *Function) int {
	at := r.at
	function.Size = r.size("the body of a function")
	function.Offset = r.at
	if r.err == nil && function.Size > i.bounds.BodyBytes {
		r.fail(ErrLimit, at, "the body of a function has %d bytes, the limit is %d", function.Size, i.bounds.BodyBytes)
	}
	body := r.part(function.Size, "the body of a function")
	function.Locals = body.locals(i.bounds.LocalsPerFunction)
	if body.err == nil && (body.left() == 0 || body.source[len(body.source)-1] != opEnd) {
		body.fail(ErrMalformed, function.Offset, "the body of a function has no end")
	}
	r.err = body.err
	return function.Locals
}

// locals skips the declarations of locals and returns their number. A declaration is a number and a type, so a few
// bytes can declare many locals.
func (r *reader) locals(limit int) int {
	total := uint64(0)
	for range r.count("groups of locals", 2, r.left()) {
		at := r.at
		total += uint64(r.u32("the number of locals"))
		r.valueType("the type of locals")
		if r.err != nil {
			return 0
		}
		if total > uint64(limit) {
			r.fail(ErrLimit, at, "a function has %d locals or more, the limit is %d", total, limit)
			return 0
		}
	}
	return int(total)
}

func mismatch(n int, of string, want int, wanted string) string {
	return fmt.Sprintf("there are %d %s for %d %s", n, of, want, wanted)
}

// constantExpression skips a constant expression (§5.4.9, §3.3.10) and its end. It allows only
// constant instructions, whose lengths it knows. It does not check their types.
func (r *reader) constantExpression() {
	const what = "a constant expression"
	for r.err == nil {
		at := r.at
		switch opcode := r.byte(what); opcode {
		case opEnd:
			return
		case opGlobalGet, opRefFunc:
			r.u32("an index in " + what)
		case opI32Const:
			r.leb(32, true, what)
		case opI64Const:
			r.leb(64, true, what)
		case opF32Const:
			r.skip(4, what)
		case opF64Const:
			r.skip(8, what)
		case opRefNull:
			r.referenceType("the type of ref.null")
		case opVector:
			if vector := r.u32(what); r.err == nil && vector != opV128Const {
				r.fail(ErrMalformed, at, "%s cannot have the vector instruction %d", what, vector)
			}
			r.skip(16, what)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // add, sub and mul of i32 and i64
			r.unsupported(at, ExtendedConstants, what+" with arithmetic")
		default:
			r.fail(ErrMalformed, at, "%s cannot have the instruction %#02x", what, opcode)
		}
	}
}
