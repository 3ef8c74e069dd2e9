package wasm

import "slices"

// The most names that Producers returns, and the most bytes of each.
const (
	maxProducers     = 64
	maxProducerBytes = 64
)

// Producers returns the names of the languages that a module was written in, and of the tools that
// processed it, as its "producers" section has them, such as "Rust", "C_plus_plus_14", "clang" and
// "wasm-bindgen" (tool conventions, ProducersSection.md). Compilers write the section, and stripping
// removes it. Names are untrusted text: use them for advice, not for decisions.
//
// Producers accepts any input, so that it also has advice for modules that [Inspect] rejects. It returns all names that
// it can read.
func Producers(source []byte) []string {
	if header(source) != nil {
		return nil
	}
	var names []string
	r := &reader{source: source, at: headerBytes}
	for r.left() > 0 && r.err == nil {
		id := SectionID(r.byte("a section id"))
		section := r.part(r.size("the section"), "the section")
		if id == SectionCustom && string(section.text("the name of a custom section")) == "producers" {
			names = section.producers(names)
		}
	}
	return names
}

// producers reads the contents of a "producers" section and appends the names to those that are
// known.
func (r *reader) producers(names []string) []string {
	for range r.count("fields", 2, r.left()) {
		field := string(r.text("the name of a field"))
		for range r.count("values", 2, r.left()) {
			name, _ := r.text("a name"), r.text("a version")
			if r.err != nil {
				return names
			}
			wanted := (field == "language" || field == "processed-by") && len(name) <= maxProducerBytes &&
				len(names) < maxProducers
			if wanted && !slices.Contains(names, string(name)) {
				names = append(names, string(name))
			}
		}
	}
	return names
}
