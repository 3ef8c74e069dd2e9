package wasm

import "fmt"

// constant validates a constant expression (§3.3.10) and its end: it leaves one value of
// the type want.
func (v *validation) constant(d *decoder, want ValueType) {
	start, values := d.at, 0
	var in instruction
	for d.err == nil {
		d.next(&in)
		if d.err != nil {
			return
		}
		var got ValueType
		switch in.opcode {
		case opEnd:
			if values != 1 {
				d.fail(ErrInvalid, start, "a constant expression leaves %d values; want 1, of type %s", values, want)
			}
			return
		case opI32Const, opI64Const, opF32Const, opF64Const, opVectorV128Const:
			got = ValueType(in.operator.results[0])
		case opRefNull:
			got = in.value
		case opRefFunc:
			got = v.functionReference(d, &in)
		case opGlobalGet:
			got = v.constantGlobal(d, &in)
		default:
			d.fail(ErrInvalid, in.at, "a constant expression cannot have %s", in.operator.name)
		}
		if got != want {
			d.fail(ErrInvalid, in.at, "a constant expression has a value of type %s; want %s", got, want)
		}
		values++
	}
}

// functionReference declares a function that is referred to outside of bodies (§3.4.12).
func (v *validation) functionReference(d *decoder, in *instruction) ValueType {
	if uint64(in.index) >= uint64(len(v.functions)) {
		d.fail(ErrInvalid, in.at, "refers to function %d, there are %d", in.index, len(v.functions))
		return 0
	}
	v.declared.add(in.index)
	v.analysis.taken.add(in.index)
	return FuncRef
}

// constantGlobal: only globals that are imported and never change are constant (§3.3.10).
func (v *validation) constantGlobal(d *decoder, in *instruction) ValueType {
	if uint64(in.index) >= uint64(v.importedGlobals) {
		d.fail(ErrInvalid, in.at, "a constant expression refers to global %d; want one of the %d that are imported", in.index, v.importedGlobals)
		return 0
	}
	global := v.globals[in.index]
	if global.Mutable {
		d.fail(ErrInvalid, in.at, "a constant expression refers to global %d, which can change", in.index)
	}
	return global.Type
}

// elementSection validates element segments (§3.4.5), and notes their types for
// table.init.
func (v *validation) elementSection(d *decoder) {
	v.elements = make([]ValueType, 0, v.module.ElementSegments)
	for range d.u32("the number of element segments") {
		v.elementSegment(d)
		if d.err != nil {
			return
		}
	}
}

func (v *validation) elementSegment(d *decoder) {
	at := d.at
	flags := d.u32("the flags of an element segment")
	active, expressions := flags&elementNotActive == 0, flags&elementExpressions != 0
	table, offset := uint32(0), -1
	if active {
		if flags&elementIndex != 0 {
			table = d.u32("the table of an element segment")
		}
		offset = d.at
		v.constant(d, I32)
	}
	kind := FuncRef
	switch {
	case flags&(elementNotActive|elementIndex) == 0:
	case expressions:
		kind = d.referenceType("the type of an element segment")
	default:
		d.byte("the kind of an element segment")
	}
	if active {
		v.elementTable(d, at, table, kind)
	}
	v.elements = append(v.elements, kind)
	count := d.count("elements", 1, d.left())
	if active && d.err == nil {
		v.elementsFit(d, at, table, offset, count)
	}
	for range count {
		if d.err != nil {
			return
		}
		if expressions {
			v.constant(d, kind)
			continue
		}
		in := instruction{at: d.at}
		in.index = d.u32("the index of a function")
		v.functionReference(d, &in)
	}
}

// elementsFit notes an active segment that does not fit its table, given where the expression of
// its offset begins.
func (v *validation) elementsFit(d *decoder, at int, table uint32, offset, count int) {
	own := int(table) - (len(v.tables) - len(v.module.Tables))
	if v.analysis.Overrun != nil || own < 0 || opcode(d.source[offset]) != opI32Const {
		return
	}
	constant := reader{source: d.source, at: offset + 1}
	first := uint32(constant.leb(32, true, "an offset"))
	if end, size := uint64(first)+uint64(count), uint64(v.tables[table].Limits.Min); end > size {
		v.analysis.Overrun = &Error{Kind: ErrUninstantiable, Section: SectionElement.String(), Offset: at,
			Message: fmt.Sprintf("an active element segment ends at %d and table %d at %d, so instantiating the module traps", end, table, size)}
	}
}

// elementTable checks the table that an active segment is for.
func (v *validation) elementTable(d *decoder, at int, table uint32, kind ValueType) {
	switch {
	case d.err != nil:
	case uint64(table) >= uint64(len(v.tables)):
		d.fail(ErrInvalid, at, "an element segment is for table %d, there are %d", table, len(v.tables))
	case v.tables[table].Element != kind:
		d.fail(ErrInvalid, at, "an element segment of %s is for table %d, which holds %s", kind, table, v.tables[table].Element)
	}
}
