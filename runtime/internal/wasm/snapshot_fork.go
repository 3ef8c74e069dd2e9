package wasm

// What Passes.Fork adds: the imports ForkReached, of type (i32) -> (i32), and ForkResume,
// of type () -> (i32), from ForkModule, and the export ForkName, a function of type () -> ().
const (
	ForkModule  = "caisson:fork@1"
	ForkReached = "reached"
	ForkResume  = "resume"
	ForkName    = "caisson:fork@1"
)

// forkImports is how many imports Passes.Fork adds.
const forkImports = 2

// fork is where a command starts and where it reads.
type fork struct {
	start uint32 // the function that is exported as _start
	reads bitSet // the imports of fd_read, which may stand there more than once
	host  uint32 // one of them; all are the same function of the host
	read  uint32 // what the module has in their place
}

// readType is the type of fd_read: a file descriptor, where in memory the places to read
// to are listed, how many there are, and where the number of bytes goes; an error number.
func readType() FuncType {
	return FuncType{Params: []ValueType{I32, I32, I32, I32}, Results: []ValueType{I32}}
}

// forkOf returns nil for a module that is not a WASI command, or never reads.
func forkOf(m *Module) *fork {
	f := &fork{reads: newBitSet(len(m.Imports))}
	if !f.findStart(m) || !f.findReads(m) {
		return nil
	}
	return f
}

func (f *fork) findStart(m *Module) bool {
	for _, export := range m.Exports {
		if export.Kind == ExternFunction && export.Name == "_start" {
			f.start = export.Index
			t, _ := m.functionType(export.Index)
			return len(t.Params)+len(t.Results) == 0
		}
	}
	return false
}

func (f *fork) findReads(m *Module) (found bool) {
	function, want := uint32(0), typeKey(readType())
	for _, imported := range m.Imports {
		if imported.Kind != ExternFunction {
			continue
		}
		if imported.Module == "wasi_snapshot_preview1" && imported.Name == "fd_read" && typeKey(imported.Function) == want {
			f.reads.add(function)
			f.host, found = function, true
		}
		function++
	}
	return found
}

// addFork adds the function that is there in place of fd_read, and the one that is there
// beside _start. The former asks in a loop, because a stack that was put back is used up:
// the host can save another one only where it is called again.
func (r *rewriting) addFork() {
	reached := r.addImport(ForkModule, ForkReached, FuncType{Params: []ValueType{I32}, Results: []ValueType{I32}})
	resume := r.addImport(ForkModule, ForkResume, FuncType{Results: []ValueType{I32}})

	read := &encoder{}
	read.block(opLoop).at(opLocalGet, 0).at(opCall, reached).at(opBrIf, 0).do(opEnd)
	for parameter := range uint32(4) {
		read.at(opLocalGet, parameter)
	}
	read.at(opCall, r.fork.host).do(opEnd)
	r.fork.read = r.addFunction(readType(), read.bytes)

	enter := &encoder{}
	enter.at(opCall, resume).block(opIf).do(opElse).at(opCall, r.moved(r.fork.start)).do(opEnd, opEnd)
	r.addExport(ForkName, ExternFunction, r.addFunction(FuncType{}, enter.bytes))
	r.done.Forks = true
}
