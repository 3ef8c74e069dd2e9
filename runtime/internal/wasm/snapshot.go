package wasm

import "fmt"

// Segment is a data segment that the host writes instead of instantiation.
type Segment struct {
	Offset uint32 // in the memory
	// Bytes is a part of the module's source, which must not be modified while Bytes is in use.
	Bytes []byte
}

// pageBytes is the size of a page of memory (§4.2.8).
const pageBytes = 1 << 16

// liftData removes the data segments if the host can write them instead: each active segment must
// have a fixed position in the module's own memory, independent of the imports. If an instruction uses a
// segment, the passive ones stay, and active ones become empty, as instantiation leaves them (§4.5.4).
func (r *rewriting) liftData() error {
	at, present := r.module.section(SectionData)
	if !present || r.module.DataSegments == 0 {
		return nil
	}
	l := &lifting{decoder: decoderOf(r.source, at.ID, at.Content, at.End, r.analysis.features)}
	if len(r.module.Memories) == 1 {
		l.own, l.memory = true, uint64(r.module.Memories[0].Min)*pageBytes
	}
	count := l.u32("the number of data segments")
	for n := range count {
		reason := l.segment()
		if l.err != nil {
			return l.err
		}
		if reason != "" {
			r.done.DataKept = fmt.Sprintf("data segment %d %s", n, reason)
			return nil
		}
	}
	r.done.Data, r.lifted = l.segments, true
	if r.analysis.bulk&(1<<opMemoryInit.number()|1<<opDataDrop.number()) != 0 {
		var content encoder
		content.u32(count)
		r.dataLeft = append(content.bytes, l.left...)
	}
	return nil
}

// lifting reads a data section, which must be valid.
type lifting struct {
	decoder
	own      bool   // the memory is the module's own
	memory   uint64 // its initial size in bytes
	segments []Segment
	left     []byte // the segments, without the bytes of active ones
}

// emptySegment is an active segment without bytes: its mode, its offset, which is i32.const 0, and its length.
var emptySegment = []byte{0, byte(opI32Const), 0, byte(opEnd), 0}

// segment reads a segment. It returns the reason why it cannot be removed, or "".
func (l *lifting) segment() (reason string) {
	first := l.at
	var s Segment
	active, content := l.dataSegment(func(uint32) { s.Offset, reason = l.offset() })
	s.Bytes = content
	switch {
	case l.err != nil:
		return ""
	case !active:
		l.left = append(l.left, l.source[first:l.at]...)
		return ""
	case !l.own:
		return "is for an imported memory"
	case reason == "" && uint64(s.Offset)+uint64(len(s.Bytes)) > l.memory:
		return "extends past the end of the memory"
	}
	l.segments, l.left = append(l.segments, s), append(l.left, emptySegment...)
	return reason
}

// offset reads the constant expression of an offset: one instruction, and end.
func (l *lifting) offset() (offset uint32, reason string) {
	var in, end instruction
	l.next(&in)
	l.next(&end)
	if l.err != nil {
		return 0, ""
	}
	if in.opcode != opI32Const {
		return 0, "takes its offset from an imported global"
	}
	number := reader{source: l.source[:in.end], at: in.at + 1, section: l.section}
	return uint32(number.leb(32, true, "an offset")), ""
}

// Passes.Fork adds the imports ForkReached, of type (i32) -> (i32), and ForkResume, of type () ->
// (i32), from ForkModule, and the export ForkName, a function of type () -> ().
const (
	ForkModule  = "caisson:fork@1"
	ForkReached = "reached"
	ForkResume  = "resume"
	ForkName    = "caisson:fork@1"
)

// forkImports is the number of imports that Passes.Fork adds.
const forkImports = 2

// fork describes where a command starts and where it reads.
type fork struct {
	start uint32 // the function exported as _start
	reads bitSet // the imports of fd_read, of which there may be several
	host  uint32 // one of them; all are the same host function
	read  uint32 // the function that replaces them
}

// readType is the type of fd_read. Its parameters are a file descriptor, the address of an array of
// buffers, their number, and the address for the number of bytes read. Its result is an error
// number.
func readType() FuncType {
	return FuncType{Params: []ValueType{I32, I32, I32, I32}, Results: []ValueType{I32}}
}

// forkOf returns nil if a module is not a WASI command or never reads.
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
			return t.values() == 0
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

// addFork adds the function that replaces fd_read, and the one to call instead of _start. The
// former calls ForkReached in a loop, because a restored stack is used up: the host can save
// another one only when it is called again.
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

// ExportedGlobal is a global that the host can read and write.
type ExportedGlobal struct {
	Name string    // of the export
	Type ValueType // I32, I64, F32 or F64
}

// maxRestoredGlobals is the maximum number of globals to restore for each call, one by one.
// Compilers generate only a few; none of the measured programs has more than a dozen.
const maxRestoredGlobals = 1000

// exportGlobals exports the module's own mutable globals, unless an instance cannot be restored for
// another reason.
func (r *rewriting) exportGlobals() {
	if r.done.Unrestorable = r.unrestorable(); r.done.Unrestorable != "" {
		return
	}
	for n, global := range r.module.Globals {
		if !global.Mutable {
			continue
		}
		index := r.ownGlobals + uint32(n)
		name := fmt.Sprint(globalPrefix, index)
		r.addExport(name, ExternGlobal, r.movedGlobal(index))
		r.done.Globals = append(r.done.Globals, ExportedGlobal{name, global.Type})
	}
}

// unrestorable returns the state of an instance that is neither in its own memory nor in its own
// numeric globals, as a reason, or "".
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

// importedState returns the state that the module shares with other modules, as a reason, or "".
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

// globalState returns a reason if the host cannot set some of the module's own globals, or "".
func (r *rewriting) globalState() string {
	imported, mutable := r.ownGlobals, 0
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
