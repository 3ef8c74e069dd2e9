package wasm

import "fmt"

// ExportedGlobal is a global that the host can read and write.
type ExportedGlobal struct {
	Name string    // of the export
	Type ValueType // I32, I64, F32 or F64
}

// maxRestoredGlobals is the most globals that are put back for each call, one by one.
// Compilers make a few; none of the programs measured has more than a dozen.
const maxRestoredGlobals = 1000

// exportGlobals exports the module's own mutable globals, unless something else keeps an
// instance from being restored.
func (r *rewriting) exportGlobals() {
	if r.done.Unrestorable = r.unrestorable(); r.done.Unrestorable != "" {
		return
	}
	imported := r.importedGlobals()
	for n, global := range r.module.Globals {
		if !global.Mutable {
			continue
		}
		index := imported + uint32(n)
		name := fmt.Sprint(globalPrefix, index)
		r.addExport(name, ExternGlobal, index)
		r.done.Globals = append(r.done.Globals, ExportedGlobal{name, global.Type})
	}
}

// importedGlobals returns how many globals are imported.
func (r *rewriting) importedGlobals() uint32 {
	n := uint32(0)
	for _, imported := range r.module.Imports {
		if imported.Kind == ExternGlobal {
			n++
		}
	}
	return n
}

// unrestorable returns what the state of an instance has beside one memory and numeric
// globals of its own, or "".
func (r *rewriting) unrestorable() string {
	if reason := r.importedState(); reason != "" {
		return reason
	}
	switch {
	case r.analysis.ChangesTables:
		return "an instruction can change a table"
	case r.analysis.UsesSegments:
		return "an instruction uses a data or element segment, which can be dropped"
	}
	return r.globalState()
}

// importedState returns what the module shares with others.
func (r *rewriting) importedState() string {
	globals := 0
	for _, imported := range r.module.Imports {
		switch imported.Kind {
		case ExternMemory:
			return "the memory is imported"
		case ExternTable:
			return "a table is imported"
		case ExternGlobal:
			if imported.Global.Mutable {
				return fmt.Sprintf("global %d is mutable and imported", globals)
			}
			globals++
		}
	}
	return ""
}

// globalState returns which of the module's own globals the host cannot set.
func (r *rewriting) globalState() string {
	imported, mutable := r.importedGlobals(), 0
	for n, global := range r.module.Globals {
		if !global.Mutable {
			continue
		}
		mutable++
		switch global.Type {
		case I32, I64, F32, F64:
		default:
			return fmt.Sprintf("global %d is mutable and of type %s", imported+uint32(n), global.Type)
		}
	}
	if mutable > maxRestoredGlobals {
		return fmt.Sprintf("%d globals are mutable, more than %d", mutable, maxRestoredGlobals)
	}
	return ""
}
