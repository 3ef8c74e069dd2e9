package wasm

import "fmt"

// parametric validates drop and select (§3.3.4).
func (b *bodyValidation) parametric(in *instruction) {
	switch in.opcode {
	case opDrop:
		b.pop()
	case opSelectTyped:
		if in.index != 1 {
			b.invalid("select names %d types; want 1", in.index)
		}
		b.expect(I32)
		b.expect(in.value)
		b.expect(in.value)
		b.push(in.value)
		b.selected(in, in.value)
	case opSelect:
		b.expect(I32)
		first, second := b.pop(), b.pop()
		if first == unknown {
			first, second = second, first
		}
		if second != unknown && second != first {
			b.invalid("select takes two values of one type, %s and %s are on the stack", second, first)
		}
		if first == FuncRef || first == ExternRef {
			b.invalid("select takes %s only if it names the type", first)
		}
		b.push(first)
		b.selected(in, first)
	}
}

// localVariable validates locals (§3.3.5).
func (b *bodyValidation) localVariable(in *instruction) {
	if uint64(in.index) >= uint64(len(b.locals)) {
		b.invalid("%s refers to local %d, there are %d", in.operator.name, in.index, len(b.locals))
		return
	}
	t := b.locals[in.index]
	if in.opcode == opLocalGet {
		b.spills.get(in.index)
		b.joins.get(in.index)
	} else {
		b.spills.set(in.index)
		b.moves.set()
		b.joins.set(in.index, b.origin(1))
		b.expect(t)
	}
	if in.opcode != opLocalSet {
		b.push(t)
		b.from(b.joins.origin(in.index))
	}
}

// globalVariable validates globals (§3.3.5).
func (b *bodyValidation) globalVariable(in *instruction) {
	if uint64(in.index) >= uint64(len(b.v.globals)) {
		b.invalid("%s refers to global %d, there are %d", in.operator.name, in.index, len(b.v.globals))
		return
	}
	b.found.Globals++
	global := b.v.globals[in.index]
	if in.opcode == opGlobalGet {
		b.push(global.Type)
		return
	}
	if !global.Mutable {
		b.invalid("global.set changes global %d, which cannot change", in.index)
	}
	b.expect(global.Type)
}

// reference validates instructions on references (§3.3.2).
func (b *bodyValidation) reference(in *instruction) {
	switch in.opcode {
	case opRefNull:
		b.push(in.value)
	case opRefIsNull:
		if t := b.pop(); t != FuncRef && t != ExternRef && t != unknown {
			b.invalid("ref.is_null takes a reference, %s is on the stack", t)
		}
		b.push(I32)
	case opRefFunc:
		b.found.Globals++
		if uint64(in.index) >= uint64(len(b.v.functions)) {
			b.invalid("ref.func refers to function %d, there are %d", in.index, len(b.v.functions))
			return
		}
		if !b.v.declared.has(in.index) {
			b.invalid("ref.func refers to function %d, which no export, global or element segment names", in.index)
		}
		b.v.analysis.taken.add(in.index)
		if !b.v.analysis.referenced.has(in.index) {
			b.v.analysis.referenced.add(in.index)
			b.v.addReferences(&b.decoder, in.at, 1)
		}
		b.push(FuncRef)
	}
}

// data validates instructions on data segments (§3.3.7). In a body, the number of segments is known
// only from the data count section (§5.5.16).
func (b *bodyValidation) data(in *instruction) {
	b.v.analysis.UsesSegments = true
	if !b.v.hasDataCount {
		b.fail(ErrMalformed, in.at, "%s needs a data count section", in.operator.name)
	}
	if uint64(in.index) >= uint64(b.v.module.DataSegments) {
		b.invalid("%s refers to data segment %d, there are %d", in.operator.name, in.index, b.v.module.DataSegments)
	}
	b.apply(in.operator)
}

// table validates instructions on tables and element segments (§3.3.6).
func (b *bodyValidation) table(in *instruction) {
	switch in.opcode {
	case opTableInit:
		if element := b.segmentType(in.index); element != b.tableType(in.second) {
			b.invalid("table.init copies %s to table %d, which holds another type", element, in.second)
		}
	case opElemDrop:
		b.segmentType(in.index)
	case opTableCopy:
		if b.tableType(in.index) != b.tableType(in.second) {
			b.invalid("table.copy copies between tables %d and %d, which hold different types", in.second, in.index)
		}
	default: // a part of the signature depends on the table
		element := b.tableType(in.index)
		switch in.opcode {
		case opTableGet:
			b.expect(I32)
			b.push(element)
		case opTableSet:
			b.expect(element)
			b.expect(I32)
		case opTableGrow:
			b.expect(I32)
			b.expect(element)
			b.push(I32)
		case opTableFill:
			b.expect(I32)
			b.expect(element)
			b.expect(I32)
		}
	}
	switch in.opcode {
	case opTableSet, opTableInit, opTableCopy, opTableGrow, opTableFill:
		b.v.analysis.ChangesTables = true
	}
	b.apply(in.operator)
}

// tableType returns the element type of a table.
func (b *bodyValidation) tableType(index uint32) ValueType {
	if uint64(index) >= uint64(len(b.v.tables)) {
		b.invalid("%s refers to table %d, there are %d", b.in.operator.name, index, len(b.v.tables))
		return unknown
	}
	return b.v.tables[index].Element
}

func (b *bodyValidation) segmentType(index uint32) ValueType {
	b.v.analysis.UsesSegments = true
	if uint64(index) >= uint64(len(b.v.elements)) {
		b.invalid("%s refers to element segment %d, there are %d", b.in.operator.name, index, len(b.v.elements))
		return unknown
	}
	return b.v.elements[index]
}

// constant validates a constant expression (§3.3.10) and its end. It must leave one value of type
// want.
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

// functionReference declares a function that is referenced outside of bodies (§3.4.12).
func (v *validation) functionReference(d *decoder, in *instruction) ValueType {
	if uint64(in.index) >= uint64(len(v.functions)) {
		d.fail(ErrInvalid, in.at, "refers to function %d, there are %d", in.index, len(v.functions))
		return 0
	}
	v.declared.add(in.index)
	v.analysis.taken.add(in.index)
	return FuncRef
}

// constantGlobal validates global.get in a constant expression. Only imported immutable globals are
// constant (§3.3.10).
func (v *validation) constantGlobal(d *decoder, in *instruction) ValueType {
	if uint64(in.index) >= uint64(v.importedGlobals) {
		d.fail(ErrInvalid, in.at, "a constant expression refers to global %d; want one of the %d that are imported", in.index,
			v.importedGlobals)
		return 0
	}
	global := v.globals[in.index]
	if global.Mutable {
		d.fail(ErrInvalid, in.at, "a constant expression refers to global %d, which can change", in.index)
	}
	return global.Type
}

// elementSection validates element segments (§3.4.5) and records their types for table.init.
func (v *validation) elementSection(d *decoder) {
	v.elements = make([]ValueType, 0, v.module.ElementSegments)
	for range d.u32("the number of element segments") {
		at := d.at
		d.elementSegment(elementVisitor{
			constant: func(want ValueType) { v.constant(d, want) },
			function: func() {
				in := instruction{at: d.at}
				in.index = d.u32("the index of a function")
				v.functionReference(d, &in)
			},
			elements: func(s elementSegment) {
				if s.active {
					v.elementTable(d, at, s)
				}
				v.elements = append(v.elements, s.kind)
				v.addReferences(d, at, s.count)
				if s.active && d.err == nil {
					v.elementsFit(d, at, s)
				}
			},
		})
		if d.err != nil {
			return
		}
	}
}

// addReferences counts references that each instance makes.
func (v *validation) addReferences(d *decoder, at, count int) {
	if v.references += count; v.references > v.bounds.References {
		d.fail(ErrLimit, at, "the module has more than %d references to functions, in element segments and as ref.func",
			v.bounds.References)
	}
}

// elementsFit records an active segment that does not fit its table.
func (v *validation) elementsFit(d *decoder, at int, s elementSegment) {
	own := int(s.table) - (len(v.tables) - len(v.module.Tables))
	if v.analysis.Overrun != nil || own < 0 || opcode(d.source[s.offset]) != opI32Const {
		return
	}
	constant := reader{source: d.source, at: s.offset + 1}
	first := uint32(constant.leb(32, true, "an offset"))
	if end, size := uint64(first)+uint64(s.count), uint64(v.tables[s.table].Limits.Min); end > size {
		v.analysis.Overrun = &Error{Kind: ErrUninstantiable, Section: SectionElement.String(), Offset: at,
			Message: fmt.Sprintf("an active element segment ends at %d and table %d at %d, so instantiating the module traps",
				end, s.table, size)}
	}
}

// elementTable checks the table of an active segment.
func (v *validation) elementTable(d *decoder, at int, s elementSegment) {
	switch {
	case d.err != nil:
	case uint64(s.table) >= uint64(len(v.tables)):
		d.fail(ErrInvalid, at, "an element segment is for table %d, there are %d", s.table, len(v.tables))
	case v.tables[s.table].Element != s.kind:
		d.fail(ErrInvalid, at, "an element segment of %s is for table %d, which holds %s", s.kind, s.table,
			v.tables[s.table].Element)
	}
}
