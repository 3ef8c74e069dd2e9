package wasm

// custom reads the name of a custom section (§5.5.3), and walks the one kind of custom
// section whose contents the specification defines.
func (i *inspection) custom(r *reader, section Section) {
	custom := Custom{
		Name:   r.name("the name of a custom section", i.bounds.NameBytes),
		Offset: section.Offset,
		Size:   section.End - section.Offset,
	}
	if r.err != nil {
		return
	}
	contents := r.part(r.left(), "a custom section")
	if custom.Name == "name" {
		contents.section = "name"
		contents.names()
		custom.Problem = contents.failure()
	}
	if i.module.Custom == nil {
		i.module.Custom = make([]Custom, 0, i.customSections())
	}
	i.module.Custom = append(i.module.Custom, custom)
}

func (i *inspection) customSections() int {
	n := 0
	for _, section := range i.module.Sections {
		if section.ID == SectionCustom {
			n++
		}
	}
	return n
}

// Subsections of the name section (§7.4.1).
const (
	namesModule    = 0
	namesFunctions = 1
	namesLocals    = 2
)

// names walks the contents of a name section (§7.4.1). Subsections that core 2.0 does
// not define are passed over.
func (r *reader) names() {
	for r.left() > 0 && r.err == nil {
		id := r.byte("the id of a subsection")
		subsection := r.part(r.size("a subsection"), "a subsection")
		switch id {
		case namesModule:
			subsection.text("the name of the module")
		case namesFunctions:
			subsection.nameMap()
		case namesLocals:
			subsection.indirectNameMap()
		default:
			continue
		}
		subsection.end()
		r.err = subsection.err
	}
}

// nameMap walks a name map (§7.4.1): pairs of an index and a name.
func (r *reader) nameMap() {
	for range r.count("names", 2, r.left()) {
		r.u32("an index")
		r.text("a name")
		if r.err != nil {
			return
		}
	}
}

// indirectNameMap walks an indirect name map (§7.4.1): pairs of an index and a name map.
func (r *reader) indirectNameMap() {
	for range r.count("name maps", 2, r.left()) {
		r.u32("an index")
		r.nameMap()
		if r.err != nil {
			return
		}
	}
}

// StripCustom returns a copy of a module without its custom sections, except those that
// keep wants by name. All other bytes stay as they are: custom sections do not change
// what a module does (§2.5).
//
// The module m must be what [Inspect] returned for source.
func StripCustom(source []byte, m *Module, keep func(name string) bool) []byte {
	stripped := make([]byte, 0, len(source))
	copied := 0
	for _, custom := range m.Custom {
		if keep(custom.Name) {
			continue
		}
		stripped = append(stripped, source[copied:custom.Offset]...)
		copied = custom.Offset + custom.Size
	}
	return append(stripped, source[copied:]...)
}
