package wasm

// referencePass replaces ref.func in bodies by global.get of an added global with the reference. wazero v1.12.0 makes
// an object of 24 bytes each time it executes ref.func, and keeps it as long as the instance.
type referencePass struct {
	globals map[uint32]uint32 // by function
}

// addReferences adds a global for each function that ref.func names in a body. Function indices must be final.
func (r *rewriting) addReferences(p *referencePass) {
	for function := range uint32(len(r.module.Functions)) + r.importedFunctions {
		if !r.analysis.referenced.has(function) {
			continue
		}
		p.globals[function] = r.globals
		r.globals++
		global := r.added[SectionGlobal].next()
		global.bytes = append(global.bytes, byte(FuncRef), 0)
		global.at(opRefFunc, r.moved(function)).do(opEnd)
	}
}

func (p *referencePass) enter(*bodyRewriting) {}

func (p *referencePass) visit(b *bodyRewriting, in *instruction) {
	if in.opcode == opRefFunc {
		var get encoder
		b.replace(in, get.at(opGlobalGet, p.globals[in.index]).bytes)
	}
}
