package wasm

import "fmt"

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

// rank returns the place of a section in the order of §5.5.16, which differs from the
// order of ids, from 1 on, or 0 for a section that may stand anywhere.
func (id SectionID) rank() int {
	switch id {
	case SectionDataCount:
		return int(SectionElement) + 1
	case SectionCode, SectionData:
		return int(id) + 1
	}
	return int(id)
}

// Section is where a section stands. Offsets are in bytes from the start of the module.
type Section struct {
	ID      SectionID
	Offset  int // of the id, the section's first byte
	Content int // of the first byte behind the id and the size
	End     int // of the first byte behind the section
}

const headerBytes = 8

// header reads the magic number and the version (§5.5.16).
func header(source []byte) error {
	malformed := func(offset int, message string) error {
		return &Error{Kind: ErrMalformed, Offset: offset, Message: message}
	}
	if len(source) < headerBytes {
		return malformed(len(source), fmt.Sprintf("ends within the header: a module has at least %d bytes", headerBytes))
	}
	if string(source[:4]) != "\x00asm" {
		return malformed(0, fmt.Sprintf("starts with %q, not with the magic number \"\\x00asm\"", source[:4]))
	}
	// The component model splits the version in two: a version, and a layer that is 0
	// for core modules and 1 for components (component model, Binary.md).
	if layer := uint(source[6]) | uint(source[7])<<8; layer == 1 {
		return &Error{Kind: ErrUnsupported, Offset: 4, Message: "this is a component, not a core module: " +
			"build for WASI preview 1 (such as wasm32-wasip1), without the step that makes a component"}
	}
	if string(source[4:8]) != "\x01\x00\x00\x00" {
		return malformed(4, fmt.Sprintf("has the version % x, not 01 00 00 00", source[4:8]))
	}
	return nil
}

// split finds the sections of a module whose header was read, and checks their order.
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
			r.unsupported(s.Offset, exceptionHandling, "the section")
		case s.ID == last:
			r.fail(ErrMalformed, s.Offset, "stands twice")
		case s.ID.rank() < last.rank():
			r.fail(ErrMalformed, s.Offset, "stands behind the %s section", last)
		default:
			last = s.ID
		}
		size := r.size("the section")
		s.Content = r.at
		r.skip(size, "the section")
		s.End = r.at
		if r.err == nil {
			visit(s)
		}
	}
	return r.failure()
}
