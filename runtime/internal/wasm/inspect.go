package wasm

// Inspect reads a module under the default [Bounds]. An error is an [*Error]. See the
// package documentation for what is read, and what is not.
//
// Inspect may be called with anything: it never panics, takes time in proportion to the
// length of source, and allocates at most 64 times that length and 64 KiB.
func Inspect(source []byte) (*Module, error) {
	return InspectWithin(source, Bounds{})
}

// InspectWithin is [Inspect] under other bounds. If they are invalid, the error wraps
// [ErrBounds].
func InspectWithin(source []byte, bounds Bounds) (*Module, error) {
	bounds, err := bounds.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := header(source); err != nil {
		return nil, err
	}
	sections, err := split(source, bounds)
	if err != nil {
		return nil, err
	}
	i := inspection{module: &Module{Sections: sections}, bounds: bounds}
	for _, section := range sections {
		if err := i.read(source, section); err != nil {
			return nil, err
		}
	}
	if err := i.complete(len(source)); err != nil {
		return nil, err
	}
	return i.module, nil
}

// inspection is a module while it is being read.
type inspection struct {
	module   *Module
	bounds   Bounds
	imported [externKinds]int // how many imports there are of each kind
	hasCode  bool
	// dataSegments is what the data count section says.
	dataSegments int
	hasDataCount bool
}

// read reads one section. All of its bytes must be accounted for.
func (i *inspection) read(source []byte, section Section) error {
	r := &reader{source: source[:section.End], at: section.Content, section: section.ID.String()}
	switch section.ID {
	case SectionCustom:
		i.custom(r, section)
	case SectionType:
		i.types(r)
	case SectionImport:
		i.imports(r)
	case SectionFunction:
		i.functions(r)
	case SectionTable:
		i.tables(r)
	case SectionMemory:
		i.memories(r)
	case SectionGlobal:
		i.globals(r)
	case SectionExport:
		i.exports(r)
	case SectionStart:
		i.start(r)
	case SectionElement:
		i.elements(r)
	case SectionDataCount:
		i.dataCount(r)
	case SectionCode:
		i.code(r)
	case SectionData:
		i.data(r)
	}
	r.end()
	return r.failure()
}

// complete checks what a missing section leaves open (§5.5.16): a function needs a
// body, and a data count needs that many segments.
func (i *inspection) complete(end int) error {
	if n := len(i.module.Functions); n > 0 && !i.hasCode {
		return &Error{Kind: ErrMalformed, Section: SectionCode.String(), Offset: end, Message: mismatch(0, "bodies", n, "functions")}
	}
	if i.hasDataCount && i.module.DataSegments != i.dataSegments {
		return &Error{Kind: ErrMalformed, Section: SectionData.String(), Offset: end,
			Message: mismatch(i.module.DataSegments, "segments", i.dataSegments, "segments in the data count section")}
	}
	return nil
}

// size returns the size of the index space of a kind, as far as it was read.
func (i *inspection) size(kind ExternKind) int {
	defined := [externKinds]int{
		ExternFunction: len(i.module.Functions),
		ExternTable:    len(i.module.Tables),
		ExternMemory:   len(i.module.Memories),
		ExternGlobal:   len(i.module.Globals),
	}
	return i.imported[kind] + defined[kind]
}

// index reads an index (§5.5.1) of which there must be size.
func (r *reader) index(what string, size int) uint32 {
	at := r.at
	index := r.u32("an index")
	if r.err == nil && uint64(index) >= uint64(size) {
		r.fail(ErrMalformed, at, "refers to %s %d, there are %d", what, index, size)
		return 0
	}
	return index
}
