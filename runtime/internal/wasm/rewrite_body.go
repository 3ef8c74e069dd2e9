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
	in    instruction
	index int // of the function among those that the module defines
	entry int // where the instructions begin
	open  int // blocks around the instruction, the body not counted
	edits []edit
}

// insert adds code at a position. It keeps the slice.
func (b *bodyRewriting) insert(at int, code []byte) {
	b.edits = append(b.edits, edit{at: at, end: at, with: code})
}

// replace puts code in the place of the instruction. It keeps the slice.
func (b *bodyRewriting) replace(in *instruction, code []byte) {
	b.edits = append(b.edits, edit{at: in.at, end: in.end, with: code})
}

// function notes what the passes do to a function.
func (b *bodyRewriting) function(r *rewriting, index int, passes ...pass) {
	f := r.module.Functions[index]
	b.decoder = decoder{
		reader:   reader{source: r.source[:f.Offset+f.Size], at: f.Offset, section: SectionCode.String()},
		features: r.analysis.features,
	}
	b.locals(f.Locals)
	b.index, b.entry, b.open, b.edits = index, b.at, 0, b.edits[:0]
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
			b.open++
		case opEnd:
			b.open--
		}
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
