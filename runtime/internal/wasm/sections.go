package wasm

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// SectionID is the id of a section (§5.5.2).
type SectionID byte

// The sections of core 2.0.
const (
	SectionCustom SectionID = iota
	SectionType
	SectionImport
	SectionFunction
	SectionTable
	SectionMemory
	SectionGlobal
	SectionExport
	SectionStart
	SectionElement
	SectionCode
	SectionData
	SectionDataCount

	sectionTag // exception handling
)

// String returns the section's name, such as "data count".
func (id SectionID) String() string {
	names := [...]string{"custom", "type", "import", "function", "table", "memory", "global",
		"export", "start", "element", "code", "data", "data count", "tag"}
	if int(id) < len(names) {
		return names[id]
	}
	return fmt.Sprintf("unknown (%d)", byte(id))
}

// rank returns the position of a section in the order of §5.5.16, counted from 1, which differs
// from the order of ids. It returns 0 for a section that may be anywhere.
func (id SectionID) rank() int {
	switch id {
	case SectionDataCount:
		return int(SectionElement) + 1
	case SectionCode, SectionData:
		return int(id) + 1
	}
	return int(id)
}

// Section is the position of a section. Offsets are in bytes from the start of the module.
type Section struct {
	ID      SectionID
	Offset  int // of the id, the section's first byte
	Content int // of the first byte after the id and the size
	End     int // of the first byte after the section
}

const headerBytes = 8

// header reads the magic number and the version (§5.5.16).
func header(source []byte) error {
	malformed := func(offset int, message string) error {
		return &Error{Kind: ErrMalformed, Offset: offset, Message: message}
	}
	if len(source) < headerBytes {
		message := fmt.Sprintf("ends within the header: a module has at least %d bytes", headerBytes)
		return &Error{Kind: ErrTruncated, Offset: len(source), Message: message}
	}
	if string(source[:4]) != "\x00asm" {
		return malformed(0, fmt.Sprintf("starts with %q, not with the magic number \"\\x00asm\"", source[:4]))
	}
	// The component model splits the version in two: a version, and a layer that is 0
	// for core modules and 1 for components (component model, Binary.md).
	if layer := uint(source[6]) | uint(source[7])<<8; layer == 1 {
		return &Error{Kind: ErrUnsupported, Offset: 4, Message: "this is a component, not a core module",
			Proposal: Components}
	}
	if string(source[4:8]) != "\x01\x00\x00\x00" {
		return malformed(4, fmt.Sprintf("has the version % x, not 01 00 00 00", source[4:8]))
	}
	return nil
}

// split finds the sections of a module whose header has been checked, and checks their order.
func split(source []byte, bounds Bounds) ([]Section, error) {
	// Counting first makes the one allocation exact.
	n := 0
	if err := walk(source, bounds, func(Section) { n++ }); err != nil {
		return nil, err
	}
	sections := make([]Section, 0, n)
	err := walk(source, bounds, func(s Section) { sections = append(sections, s) })
	return sections, err
}

// walk calls visit with each section of a module.
func walk(source []byte, bounds Bounds, visit func(Section)) error {
	r := &reader{source: source, at: headerBytes}
	last, custom := SectionCustom, 0
	for r.left() > 0 && r.err == nil {
		s := Section{Offset: r.at}
		s.ID = SectionID(r.byte("a section id"))
		if s.ID > sectionTag {
			r.fail(ErrMalformed, s.Offset, "there is no section with the id %d", s.ID)
			break
		}
		r.section = s.ID.String()
		switch {
		case s.ID == SectionCustom:
			custom++
			if custom > bounds.CustomSections {
				r.fail(ErrLimit, s.Offset, "there are more than %d custom sections", bounds.CustomSections)
			}
		case s.ID == sectionTag:
			r.unsupported(s.Offset, ExceptionHandling, "the section")
		case s.ID == last:
			r.fail(ErrMalformed, s.Offset, "appears twice")
		case s.ID.rank() < last.rank():
			r.fail(ErrMalformed, s.Offset, "appears after the %s section", last)
		default:
			last = s.ID
		}
		at := r.at
		size := r.u32("the section")
		if uint64(size) > uint64(r.left()) {
			r.fail(ErrTruncated, at, "the section claims %d bytes, %d bytes are left", size, r.left())
		}
		s.Content = r.at
		r.skip(int(size), "the section")
		s.End = r.at
		if r.err == nil {
			visit(s)
		}
	}
	return r.failure()
}

// Bits of the flags of an element segment (§5.5.12).
const (
	elementNotActive   = 1 << iota // passive or declarative
	elementIndex                   // active: has a table index; else: declarative
	elementExpressions             // expressions instead of function indices
)

// elements reads the element section (§5.5.12).
func (i *inspection) elements(r *reader) {
	n := r.count("element segments", 3, i.bounds.ElementSegments)
	for range n {
		r.elementSegment(elementVisitor{
			constant: func(ValueType) { r.constantExpression() }, function: func() { r.u32("the index of a function") },
			elements: func(elementSegment) {},
		})
		if r.err != nil {
			return
		}
	}
	i.module.ElementSegments = n
}

// elementSegment is what an element segment says before its elements.
type elementSegment struct {
	active bool
	table  uint32 // of an active one, with
	offset int    // where the expression of its offset in the table begins
	kind   ValueType
	count  int
}

// elementVisitor reads the parts of an element segment that depend on the purpose.
type elementVisitor struct {
	constant func(want ValueType) // reads a constant expression
	function func()               // reads the index of a function
	elements func(elementSegment) // is called before the elements
}

// elementSegment reads an element segment. The elements are function indices, of one kind, or expressions of a
// reference type.
func (r *reader) elementSegment(visit elementVisitor) {
	at := r.at
	flags := r.u32("the flags of an element segment")
	if flags > elementNotActive|elementIndex|elementExpressions {
		r.fail(ErrMalformed, at, "an element segment cannot have the flags %d", flags)
		return
	}
	s := elementSegment{active: flags&elementNotActive == 0, kind: FuncRef}
	expressions := flags&elementExpressions != 0
	if s.active {
		if flags&elementIndex != 0 {
			s.table = r.u32("the table of an element segment")
		}
		s.offset = r.at
		visit.constant(I32)
	}
	switch at := r.at; {
	case flags&(elementNotActive|elementIndex) == 0:
	case expressions:
		s.kind = r.referenceType("the type of an element segment")
	default:
		if kind := r.byte("the kind of an element segment"); r.err == nil && kind != 0 {
			r.fail(ErrMalformed, at, "the kind of an element segment cannot be %#02x", kind)
		}
	}
	s.count = r.count("elements", 1, r.left())
	visit.elements(s)
	for range s.count {
		if r.err != nil {
			return
		}
		if expressions {
			visit.constant(s.kind)
		} else {
			visit.function()
		}
	}
}

// dataCount reads the data count section (§5.5.15). The number is compared with the data section
// and never used for allocation.
func (i *inspection) dataCount(r *reader) {
	i.dataSegments, i.hasDataCount = int(r.u32("the number of data segments")), true
}

// data reads the data section (§5.5.14).
func (i *inspection) data(r *reader) {
	n := r.count("data segments", 2, i.bounds.DataSegments)
	for range n {
		r.dataSegment(func(uint32) { r.constantExpression() })
		if r.err != nil {
			return
		}
	}
	i.module.DataSegments = n
}

// dataSegment reads a data segment. If it is active, offset reads the constant expression of its offset in a memory.
func (r *reader) dataSegment(offset func(memory uint32)) (active bool, content []byte) {
	at := r.at
	switch mode := r.u32("the mode of a data segment"); mode {
	case 0: // active, in memory 0
		active = true
		offset(0)
	case 1: // passive
	case 2: // active, in the memory with this index
		active = true
		offset(r.u32("the memory of a data segment"))
	default:
		r.fail(ErrMalformed, at, "a data segment cannot have the mode %d", mode)
	}
	length := r.size("a data segment")
	begin := r.at
	r.skip(length, "a data segment")
	return active, r.source[begin:r.at:r.at]
}

// BoundTables returns a copy of a module whose tables can have no more than most elements together, or
// their minimums if these are more. Each can grow by the same number. Tables are outside linear memory
// and its limit. Growing a table further fails, as it may at any time (§4.4.11, table.grow).
//
// The module m must be the result of [Inspect] for source.
func BoundTables(source []byte, m *Module, most uint32) []byte {
	at, found := m.section(SectionTable)
	if !found {
		return slices.Clone(source)
	}
	var content encoder
	content.u32(uint32(len(m.Tables)))
	room := uint64(most)
	for _, table := range m.Tables {
		room -= min(room, uint64(table.Limits.Min))
	}
	for _, table := range m.Tables {
		maximum := table.Limits.Min + uint32(room/uint64(len(m.Tables)))
		if table.Limits.HasMax {
			maximum = min(table.Limits.Max, maximum)
		}
		content.bytes = append(content.bytes, byte(table.Element))
		content.limits(table.Limits.Min, maximum)
	}
	return withSection(source, at, content)
}

// RaiseMemory returns a copy of a module whose memory, if it has a maximum, can grow by one page more. wazero changes
// the size of a memory only when it grows, so an instance could not be reset when its memory is at its maximum. The
// host must enforce the original one.
//
// The module m must be the result of [Inspect] for source.
func RaiseMemory(source []byte, m *Module) []byte {
	at, _ := m.section(SectionMemory)
	if len(m.Memories) != 1 || !m.Memories[0].HasMax || m.Memories[0].Max == maxPages {
		return slices.Clone(source)
	}
	content := encoder{bytes: []byte{1}} // one memory
	content.limits(m.Memories[0].Min, m.Memories[0].Max+1)
	return withSection(source, at, content)
}

// limits writes limits with a minimum and a maximum (§5.3.7).
func (e *encoder) limits(minimum, maximum uint32) {
	e.bytes = append(e.bytes, 1)
	e.u32(minimum)
	e.u32(maximum)
}

// withSection returns a copy of a module in which a section has other content.
func withSection(source []byte, at Section, content encoder) []byte {
	out := encoder{bytes: make([]byte, 0, len(source)+len(content.bytes)+headerBytes)}
	out.bytes = append(out.bytes, source[:at.Offset]...)
	out.section(at.ID, content.bytes)
	return append(out.bytes, source[at.End:]...)
}

func (m *Module) section(id SectionID) (Section, bool) {
	for _, s := range m.Sections {
		if s.ID == id {
			return s, true
		}
	}
	return Section{}, false
}

// StartName is the export that [ExportStart] adds.
const StartName = "caisson:start@1"

// ExportStart returns a copy of a module in which the start function (§2.5.9), if any, is exported
// as [StartName] instead of running during instantiation. At that point the host has no instance
// yet to inspect if the function fails. The caller must call the export before any other function.
// A module that already exports the name is rejected.
//
// The module m must be the result of [Inspect] for source.
func ExportStart(source []byte, m *Module) ([]byte, error) {
	at, exports := m.section(SectionExport)
	for _, export := range m.Exports {
		if export.Name == StartName {
			return nil, &Error{Kind: ErrUnsupported, Section: SectionExport.String(), Offset: at.Offset,
				Message: fmt.Sprintf("exports %q, which is reserved", StartName)}
		}
	}
	start, present := m.section(SectionStart)
	if !present {
		return slices.Clone(source), nil
	}
	var content encoder
	content.u32(uint32(len(m.Exports)) + 1)
	if exports {
		_, counted := binary.Uvarint(source[at.Content:at.End])
		content.bytes = append(content.bytes, source[at.Content+counted:at.End]...)
	} else { // the export section belongs directly before it (§5.5.2)
		at = Section{ID: SectionExport, Offset: start.Offset, End: start.Offset}
	}
	content.export(StartName, ExternFunction, m.Start.Function)
	without := slices.Delete(slices.Clone(source), start.Offset, start.End)
	return withSection(without, at, content), nil
}
