package wasm

import (
	"context"
	"fmt"
	"slices"
)

// pass adds code to function bodies. A pass visits the instructions of a body in order and records
// edits, whose positions never decrease.
type pass interface {
	// enter is called before the first instruction.
	enter(b *bodyRewriting)
	// visit is called for each instruction. b.blocks are the blocks around it.
	visit(b *bodyRewriting, in *instruction)
}

// edit replaces the bytes from at to end, which may be an empty range.
type edit struct {
	at, end int
	with    []byte
}

// bodyRewriting is a function body while it is being rewritten. It is reused for all functions.
type bodyRewriting struct {
	decoder
	in     instruction
	index  int         // of the function among those that the module defines
	entry  int         // offset of the first instruction
	blocks []openBlock // blocks around the instruction, outermost first, without the body
	edits  []edit

	counted bool   // the function has a local counter of type i32, and its loops are split
	counter uint32 // the index of that local
	inside  int    // the edit inside the if that replaces a br_if, or 0
	passed  int64  // the cost of the instructions that a redirected branch skips

	wrapped bool   // the body is inside a block, and all exits branch to its end
	leave   []byte // code to run at that end
	leaving int    // the edit after that code, set at the end of the body

	tests int // of the meter, that the fuel pass has added
}

// openBlock is a block around an instruction.
type openBlock struct {
	opcode opcode
	takes  bool   // a branch to it carries values
	loops  uint32 // number of loops around it
}

// insert adds code at a position. It keeps the slice.
func (b *bodyRewriting) insert(at int, code []byte) {
	b.edits = append(b.edits, edit{at: at, end: at, with: code})
}

// replace replaces the instruction with code. It keeps the slice.
func (b *bodyRewriting) replace(in *instruction, code []byte) {
	b.edits = append(b.edits, edit{at: in.at, end: in.end, with: code})
}

// loops returns the number of loops around the instruction.
func (b *bodyRewriting) loops() uint32 {
	if len(b.blocks) == 0 {
		return 0
	}
	top := &b.blocks[len(b.blocks)-1]
	if top.opcode == opLoop {
		return top.loops + 1
	}
	return top.loops
}

// target returns the block that a label refers to. A branch to the body carries values.
func (b *bodyRewriting) target(label uint32) openBlock {
	if place := len(b.blocks) - 1 - int(label); place >= 0 {
		return b.blocks[place]
	}
	return openBlock{opcode: opBlock, takes: true}
}

// label returns the new label for an original one. If loops are split, each loop counts twice, and
// the label of a loop is that of the outer one.
func (b *bodyRewriting) label(label uint32) uint32 {
	switch place := len(b.blocks) - 1 - int(label); {
	case !b.counted:
		return label
	case place < 0:
		return label + b.loops()
	default:
		return label + b.loops() - b.blocks[place].loops
	}
}

// function records the edits of the passes to a function.
func (b *bodyRewriting) function(r *rewriting, index int, passes ...pass) {
	b.begin(r, index)
	for _, p := range passes {
		p.enter(b)
	}
	for b.err == nil && b.left() > 0 {
		b.next(&b.in)
		if b.err != nil {
			return
		}
		for _, p := range passes {
			p.visit(b, &b.in)
		}
		switch b.in.opcode {
		case opBlock, opLoop, opIf:
			b.blocks = append(b.blocks, openBlock{opcode: b.in.opcode, takes: r.takes(&b.in), loops: b.loops()})
		case opEnd:
			b.blocks = b.blocks[:max(len(b.blocks)-1, 0)]
		}
	}
}

// begin moves to the first instruction of a function and declares its local counter.
func (b *bodyRewriting) begin(r *rewriting, index int) {
	f := r.module.Functions[index]
	b.decoder = decoderOf(r.source, SectionCode, f.Offset, f.Offset+f.Size, r.analysis.features)
	groups := b.u32("the number of groups of locals")
	countEnd := b.at
	b.at = f.Offset
	b.locals(f.Locals)
	b.index, b.entry = index, b.at
	b.blocks, b.edits, b.leave = b.blocks[:0], b.edits[:0], nil
	b.counted, b.wrapped, b.inside, b.passed, b.tests = r.counted(index), r.wrapped(index), 0, 0, 0
	if !b.counted {
		return
	}
	b.counter = uint32(len(r.module.Types[f.Type].Params) + f.Locals)
	var count encoder
	count.u32(groups + 1)
	b.edits = append(b.edits, edit{at: f.Offset, end: countEnd, with: count.bytes})
	b.insert(b.entry, []byte{1, byte(I32)})
}

func (r *rewriting) counted(index int) bool {
	return r.passes.Meter && r.analysis.Functions[index].Loops
}

// takes reports whether a branch to a block carries values: the parameters of a loop, or the
// results of other blocks.
func (r *rewriting) takes(in *instruction) bool {
	switch {
	case !in.block.isIndex:
		return in.opcode != opLoop && in.block.result != 0
	case in.opcode == opLoop:
		return len(r.module.Types[in.block.index].Params) > 0
	default:
		return len(r.module.Types[in.block.index].Results) > 0
	}
}

// apply writes source[from:to] with edits applied.
func (e *encoder) apply(source []byte, from, to int, edits []edit) {
	for _, edit := range edits {
		e.bytes = append(append(e.bytes, source[from:edit.at]...), edit.with...)
		from = edit.end
	}
	e.bytes = append(e.bytes, source[from:to]...)
}

// edited returns the number of bytes that apply writes.
func edited(from, to int, edits []edit) int {
	n := to - from
	for _, edit := range edits {
		n += len(edit.with) - (edit.end - edit.at)
	}
	return n
}

// code writes the code section with the passes applied, followed by added functions.
func (r *rewriting) code(ctx context.Context, out *encoder) error {
	out.u32(uint32(len(r.module.Functions)) + r.added[SectionCode].n)
	var b bodyRewriting
	for index, f := range r.module.Functions {
		b.function(r, index, r.pipeline...)
		if b.err != nil {
			return b.err
		}
		length := edited(f.Offset, f.Offset+f.Size, b.edits)
		if err := r.analysis.within(f, b.tests, length, len(out.bytes)+length); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		out.u32(uint32(length))
		out.apply(r.source, f.Offset, f.Offset+f.Size, b.edits)
	}
	out.bytes = append(out.bytes, r.added[SectionCode].bytes...)
	return nil
}

// within checks the bounds on a rewritten function, and on the size of all code so far.
func (a *Analysis) within(f Function, tests, length, all int) error {
	var message string
	switch bounds := a.bounds; {
	case tests > bounds.Tests:
		message = fmt.Sprintf("a function in which loops and calls need %d tests of whether to stop, the limit is %d",
			tests, bounds.Tests)
	case length > bounds.RewrittenBody:
		message = fmt.Sprintf("the body of a function has %d bytes with what makes it stoppable, the limit is %d",
			length, bounds.RewrittenBody)
	case all > bounds.RewrittenCode:
		message = fmt.Sprintf("the code has more than %d bytes with what makes it stoppable", bounds.RewrittenCode)
	default:
		return nil
	}
	return &Error{Kind: ErrLimit, Section: SectionCode.String(), Offset: f.Offset, Message: message}
}

// assemble writes the module: the original sections in their order, with the additions and with
// updated function indices.
func (r *rewriting) assemble(ctx context.Context) error {
	out := encoder{bytes: make([]byte, 0, len(r.source)+len(r.source)/2)}
	out.bytes = append(out.bytes, r.source[:headerBytes]...)
	for _, id := range []SectionID{
		SectionType, SectionImport, SectionFunction, SectionTable, SectionMemory, SectionGlobal, SectionExport,
		SectionStart, SectionElement, SectionDataCount, SectionCode, SectionData,
	} {
		if err := r.write(ctx, &out, id); err != nil {
			return err
		}
	}
	r.done.Source = out.bytes
	return nil
}

// write writes one section, if the original has it or if something is added to it.
func (r *rewriting) write(ctx context.Context, out *encoder, id SectionID) error {
	original, present := r.module.section(id)
	switch {
	case r.lifted && id == SectionData && r.dataLeft != nil:
		out.section(id, r.dataLeft)
		return nil
	case !present && r.added[id].n == 0, r.lifted && r.dataLeft == nil && (id == SectionData || id == SectionDataCount):
		return nil
	case id == SectionCode:
		var code encoder
		if err := r.code(ctx, &code); err != nil {
			return err
		}
		out.section(id, code.bytes)
		return nil
	case !present:
		var content encoder
		content.u32(r.added[id].n)
		out.section(id, append(content.bytes, r.added[id].bytes...))
		return nil
	}
	edits, err := r.renumber(original)
	if err != nil {
		return err
	}
	if len(edits) == 0 {
		out.bytes = append(out.bytes, r.source[original.Offset:original.End]...)
		return nil
	}
	var content encoder
	content.apply(r.source, original.Content, original.End, edits)
	out.section(id, append(content.bytes, r.added[id].bytes...))
	return nil
}

// renumber returns the edits that update the length of a section, the indices of functions and globals in it, and the
// names of imports. Constant expressions refer to no globals but imported ones, which keep theirs.
func (r *rewriting) renumber(s Section) ([]edit, error) {
	d := &renumbering{r: r, decoder: decoderOf(r.source, s.ID, s.Content, s.End, r.analysis.features)}
	if s.ID == SectionStart { // which is no vector
		d.function()
		return d.edits, d.failure()
	}
	length := d.u32("the length of a section")
	first := d.at
	for n := uint32(0); n < length && (r.shift > 0 || s.ID == SectionImport) && d.err == nil; n++ {
		switch s.ID {
		case SectionImport:
			d.imported(r.module.Imports[n])
		case SectionGlobal:
			d.global()
			d.constant()
		case SectionExport:
			d.export()
		case SectionElement:
			d.elementSegment(elementVisitor{
				constant: func(ValueType) { d.constant() }, function: d.function, elements: func(elementSegment) {},
			})
		default: // it has no indices of functions
			n = length - 1
		}
	}
	if added := r.added[s.ID].n; added > 0 || len(d.edits) > 0 {
		var count encoder
		count.u32(length + added)
		d.edits = slices.Insert(d.edits, 0, edit{at: s.Content, end: first, with: count.bytes})
	}
	return d.edits, d.failure()
}

// renumbering reads a valid section and records where functions are referenced.
type renumbering struct {
	decoder
	r     *rewriting
	edits []edit
}

// imported reads an import and updates its name to that under which a host offers it.
func (d *renumbering) imported(i Import) {
	d.text("the name of a module")
	at := d.at
	d.text("the name of an import")
	if name := i.HostName(); name != i.Name {
		var changed encoder
		changed.name(name)
		d.edits = append(d.edits, edit{at: at, end: d.at, with: changed.bytes})
	}
	d.byte("the kind of an import")
	switch i.Kind {
	case ExternFunction:
		d.u32("a type")
	case ExternTable:
		d.table()
	case ExternMemory:
		d.memory()
	case ExternGlobal:
		d.global()
	}
}

// function reads and updates the index of a function.
func (d *renumbering) function() {
	at := d.at
	before := d.u32("the index of a function")
	if index := d.r.moved(before); index != before {
		d.moved(at, index)
	}
}

// moved replaces the number that was read from an offset.
func (d *renumbering) moved(at int, index uint32) {
	if d.err == nil {
		var moved encoder
		moved.u32(index)
		d.edits = append(d.edits, edit{at: at, end: d.at, with: moved.bytes})
	}
}

// constant reads a constant expression and updates function indices in it.
func (d *renumbering) constant() {
	var in instruction
	for d.err == nil {
		d.next(&in)
		if d.err != nil || in.opcode == opEnd {
			return
		}
		if in.opcode == opRefFunc {
			d.at = in.at + 1
			d.function()
		}
	}
}

func (d *renumbering) export() {
	d.text("the name of an export")
	kind := d.externKind("the kind of an export")
	if kind == ExternFunction {
		at := d.at
		if d.u32("the index of an export") < d.r.importedFunctions {
			return // a module that imports it calls the host, which looks at the caller's memory
		}
		d.at = at
		d.function()
		return
	}
	at := d.at
	before := d.u32("the index of an export")
	if index := d.r.movedGlobal(before); kind == ExternGlobal && index != before {
		d.moved(at, index)
	}
}
