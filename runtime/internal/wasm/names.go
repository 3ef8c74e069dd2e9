package wasm

// maxFunctionName is the most bytes of a function's name that FunctionNames keeps.
const maxFunctionName = 512

// FunctionNames returns the names of functions by their index in the function index space
// of the original module, from its "name" section (§7.4.1), for people who read traces.
// Names are what the module says: any text, cut to 512 bytes or fewer, and equal for
// different functions if the module likes. Functions that are not there, and sections with
// a Problem, have no names; neither has a module without that section.
//
// The module m must be what [Inspect] returned for source.
func FunctionNames(source []byte, m *Module) map[uint32]string {
	functions := uint32(len(m.Functions))
	for _, imported := range m.Imports {
		if imported.Kind == ExternFunction {
			functions++
		}
	}
	names := map[uint32]string{}
	for _, custom := range m.Custom {
		if custom.Name != "name" || custom.Problem != nil {
			continue
		}
		r := reader{source: source[:custom.Offset+custom.Size], at: custom.Offset + 1, section: custom.Name}
		r.size("the section")
		r.text("the name of a custom section")
		r.functionNames(functions, names)
	}
	return names
}

// functionNames reads the subsections of a name section, and keeps the names of functions.
func (r *reader) functionNames(functions uint32, names map[uint32]string) {
	for r.left() > 0 && r.err == nil {
		id := r.byte("the id of a subsection")
		subsection := r.part(r.size("a subsection"), "a subsection")
		if id != namesFunctions {
			continue
		}
		for range subsection.count("names", 2, subsection.left()) {
			index, name := subsection.u32("an index"), subsection.text("a name")
			if subsection.err != nil {
				return
			}
			if index < functions {
				names[index] = string(shortened(name))
			}
		}
	}
}

// shortened cuts a name at the end of a character.
func shortened(name []byte) []byte {
	if len(name) <= maxFunctionName {
		return name
	}
	end := maxFunctionName
	for name[end]&0xc0 == 0x80 { // inside a character
		end--
	}
	return name[:end]
}
