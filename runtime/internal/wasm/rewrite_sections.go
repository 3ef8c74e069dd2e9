package wasm

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
