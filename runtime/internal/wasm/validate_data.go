package wasm

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
	}
}

// variable validates locals and globals (§3.3.5).
func (b *bodyValidation) variable(in *instruction) {
	switch in.opcode {
	case opGlobalGet, opGlobalSet:
		b.globalVariable(in)
		return
	}
	if uint64(in.index) >= uint64(len(b.locals)) {
		b.invalid("%s refers to local %d, there are %d", in.operator.name, in.index, len(b.locals))
		return
	}
	t := b.locals[in.index]
	if in.opcode == opLocalGet {
		b.spills.get(in.index)
	} else {
		b.spills.set(in.index)
		b.expect(t)
	}
	if in.opcode != opLocalSet {
		b.push(t)
	}
}

func (b *bodyValidation) globalVariable(in *instruction) {
	if uint64(in.index) >= uint64(len(b.v.globals)) {
		b.invalid("%s refers to global %d, there are %d", in.operator.name, in.index, len(b.v.globals))
		return
	}
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
		if uint64(in.index) >= uint64(len(b.v.functions)) {
			b.invalid("ref.func refers to function %d, there are %d", in.index, len(b.v.functions))
			return
		}
		if !b.v.declared.has(in.index) {
			b.invalid("ref.func refers to function %d, which no export, global or element segment names", in.index)
		}
		b.v.analysis.taken.add(in.index)
		b.push(FuncRef)
	}
}

// data validates instructions on data segments (§3.3.7). Which there are, a body knows
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
	default:
		b.tableValue(in, b.tableType(in.index))
	}
	switch in.opcode {
	case opTableSet, opTableInit, opTableCopy, opTableGrow, opTableFill:
		b.v.analysis.ChangesTables = true
	}
	b.apply(in.operator)
}

// tableValue moves what a table instruction takes and leaves, if that depends on the
// table. For the others it does nothing.
func (b *bodyValidation) tableValue(in *instruction, element ValueType) {
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

// tableType returns what a table holds.
func (b *bodyValidation) tableType(index uint32) ValueType {
	if uint64(index) >= uint64(len(b.v.tables)) {
		b.invalid("%s refers to table %d, there are %d", b.in.operator.name, index, len(b.v.tables))
		return unknown
	}
	return b.v.tables[index].Element
}

// segmentType returns what an element segment holds.
func (b *bodyValidation) segmentType(index uint32) ValueType {
	b.v.analysis.UsesSegments = true
	if uint64(index) >= uint64(len(b.v.elements)) {
		b.invalid("%s refers to element segment %d, there are %d", b.in.operator.name, index, len(b.v.elements))
		return unknown
	}
	return b.v.elements[index]
}
