package wasm

// pass adds code to function bodies. Passes see the instructions of a body in order and
// note edits; positions never decrease.
type pass interface {
	// enter is called before the first instruction.
	enter(b *bodyRewriting)
	// visit is called with each instruction. The open blocks are those around it.
	visit(b *bodyRewriting, in *instruction)
}

// edit replaces the bytes from at to end, which may be none, by others.
type edit struct {
	at, end int
	with    []byte
}

// bodyRewriting is a function body while it is being rewritten. It is used for one
// function after the other.
type bodyRewriting struct {
	decoder
	in     instruction
	index  int         // of the function among those that the module defines
	entry  int         // where the instructions begin
	blocks []openBlock // around the instruction, from the outermost; the body not counted
	edits  []edit

	counted bool   // has a counter of its own, a local of type i32, and its loops are split
	counter uint32 // the index of that local
	inside  int    // the edit within the if that a br_if has become, or 0
	passed  int64  // what a branch that is led past instructions would have been charged for them

	wrapped bool   // is the inside of a block, whose end all ways out lead to
	leave   []byte // what is done there
	leaving int    // the edit behind that, once the body has ended
}

// openBlock is a block around an instruction.
type openBlock struct {
	opcode opcode
	takes  bool   // a branch to it takes values along
	loops  uint32 // how many loops are around it
}

// insert adds code at a position. It keeps the slice.
func (b *bodyRewriting) insert(at int, code []byte) {
	b.edits = append(b.edits, edit{at: at, end: at, with: code})
}

// replace puts code in the place of the instruction. It keeps the slice.
func (b *bodyRewriting) replace(in *instruction, code []byte) {
	b.edits = append(b.edits, edit{at: in.at, end: in.end, with: code})
}

// loops returns how many loops are around the instruction.
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

// target returns the block that a label stands for; the body takes values along.
func (b *bodyRewriting) target(label uint32) openBlock {
	if place := len(b.blocks) - 1 - int(label); place >= 0 {
		return b.blocks[place]
	}
	return openBlock{opcode: opBlock, takes: true}
}

// label returns the label in the place of an original one. Where loops are split, each
// counts twice, and the label of a loop is that of the outer one.
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

// function notes what the passes do to a function.
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

// begin goes to the first instruction of a function, and declares its counter.
func (b *bodyRewriting) begin(r *rewriting, index int) {
	f := r.module.Functions[index]
	b.decoder = decoder{
		reader:   reader{source: r.source[:f.Offset+f.Size], at: f.Offset, section: SectionCode.String()},
		features: r.analysis.features,
	}
	groups := b.u32("the number of groups of locals")
	behind := b.at
	b.at = f.Offset
	b.locals(f.Locals)
	b.index, b.entry = index, b.at
	b.blocks, b.edits, b.leave = b.blocks[:0], b.edits[:0], nil
	b.counted, b.wrapped, b.inside, b.passed = r.counted(index), r.wrapped(index), 0, 0
	if !b.counted {
		return
	}
	b.counter = uint32(len(r.module.Types[f.Type].Params) + f.Locals)
	var count encoder
	count.u32(groups + 1)
	b.edits = append(b.edits, edit{at: f.Offset, end: behind, with: count.bytes})
	b.insert(b.entry, []byte{1, byte(I32)})
}

// counted reports whether a function gets a counter of its own.
func (r *rewriting) counted(index int) bool {
	return r.passes.Meter && r.analysis.Functions[index].Loops
}

// takes reports whether a branch to a block takes values along: a loop's parameters, and
// the results of others.
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

// apply writes the bytes of source from one offset to another with edits.
func (e *encoder) apply(source []byte, from, to int, edits []edit) {
	for _, edit := range edits {
		e.bytes = append(append(e.bytes, source[from:edit.at]...), edit.with...)
		from = edit.end
	}
	e.bytes = append(e.bytes, source[from:to]...)
}

// edited returns how many bytes apply writes.
func edited(from, to int, edits []edit) int {
	n := to - from
	for _, edit := range edits {
		n += len(edit.with) - (edit.end - edit.at)
	}
	return n
}

// code writes the code section with the passes, and what they add.
func (r *rewriting) code(out *encoder) *Error {
	out.u32(uint32(len(r.module.Functions)) + r.added[SectionCode].n)
	var b bodyRewriting
	for index, f := range r.module.Functions {
		b.function(r, index, r.pipeline...)
		if b.err != nil {
			return b.err
		}
		out.u32(uint32(edited(f.Offset, f.Offset+f.Size, b.edits)))
		out.apply(r.source, f.Offset, f.Offset+f.Size, b.edits)
	}
	out.bytes = append(out.bytes, r.added[SectionCode].bytes...)
	return nil
}

// assemble writes the module: the sections of the original in their order, with what is
// added and with function indices that are right.
func (r *rewriting) assemble() error {
	out := encoder{bytes: make([]byte, 0, len(r.source)+len(r.source)/2)}
	out.bytes = append(out.bytes, r.source[:headerBytes]...)
	for _, id := range []SectionID{
		SectionType, SectionImport, SectionFunction, SectionTable, SectionMemory, SectionGlobal, SectionExport,
		SectionStart, SectionElement, SectionDataCount, SectionCode, SectionData,
	} {
		if err := r.write(&out, id); err != nil {
			return err
		}
	}
	r.done.Source = out.bytes
	return nil
}

// write writes one section, if the original has it or something is added to it.
func (r *rewriting) write(out *encoder, id SectionID) error {
	original, present := r.module.section(id)
	switch {
	case !present && r.added[id].n == 0, r.lifted && (id == SectionData || id == SectionDataCount):
		return nil
	case id == SectionCode:
		var code encoder
		if err := r.code(&code); err != nil {
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
	edits, first, err := r.renumber(original)
	if err != nil {
		return err
	}
	if len(edits) == 0 && r.added[id].n == 0 {
		out.bytes = append(out.bytes, r.source[original.Offset:original.End]...)
		return nil
	}
	var content encoder
	if id != SectionStart {
		content.u32(first.n + r.added[id].n)
	}
	content.apply(r.source, first.end, original.End, edits)
	out.section(id, append(content.bytes, r.added[id].bytes...))
	return nil
}

// vectorHead is the number at the start of a section that is a vector, and where the
// elements begin. A start section has none.
type vectorHead struct {
	n   uint32
	end int
}

// renumber returns the edits that a section needs because functions have other indices
// than before.
func (r *rewriting) renumber(s Section) ([]edit, vectorHead, error) {
	d := &renumbering{r: r, decoder: decoder{
		reader:   reader{source: r.source[:s.End], at: s.Content, section: s.ID.String()},
		features: r.analysis.features,
	}}
	if s.ID == SectionStart {
		if r.shift > 0 {
			d.function()
		}
		return d.edits, vectorHead{end: s.Content}, d.failure()
	}
	first := vectorHead{n: d.u32("the length of a section")}
	first.end = d.at
	for n := uint32(0); n < first.n && r.shift > 0 && d.err == nil; n++ {
		switch s.ID {
		case SectionGlobal:
			d.global()
			d.constant()
		case SectionExport:
			d.export()
		case SectionElement:
			d.element()
		default:
			return nil, first, d.failure()
		}
	}
	return d.edits, first, d.failure()
}

// renumbering reads a section that is valid, and notes where functions are named.
type renumbering struct {
	decoder
	r     *rewriting
	edits []edit
}

// function passes the index of a function.
func (d *renumbering) function() {
	at := d.at
	before := d.u32("the index of a function")
	if index := d.r.moved(before); d.err == nil && index != before {
		var moved encoder
		moved.u32(index)
		d.edits = append(d.edits, edit{at: at, end: d.at, with: moved.bytes})
	}
}

// constant passes a constant expression.
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
	if d.externKind("the kind of an export") == ExternFunction {
		d.function()
		return
	}
	d.u32("the index of an export")
}

func (d *renumbering) element() {
	flags := d.u32("the flags of an element segment")
	expressions := flags&elementExpressions != 0
	if flags&elementNotActive == 0 {
		if flags&elementIndex != 0 {
			d.u32("the table of an element segment")
		}
		d.constant()
	}
	if flags&(elementNotActive|elementIndex) != 0 {
		d.skip(1, "the kind of an element segment")
	}
	for range d.count("elements", 1, d.left()) {
		if d.err != nil {
			return
		}
		if expressions {
			d.constant()
		} else {
			d.function()
		}
	}
}
