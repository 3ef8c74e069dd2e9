package wasm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnvalidated means that [Rewrite] was called with an [Analysis] of different bytes.
var ErrUnvalidated = errors.New("module was not validated")

// MeterModule and MeterRefill name the import that Passes.Meter adds, of type (i64) -> (i64).
const (
	MeterModule = "caisson:meter@1"
	MeterRefill = "refill"
)

// CounterModule and CounterName name the global that Passes.Linked imports, of type i64. CounterName is also the name
// under which Passes.Meter exports the counter.
const (
	CounterModule = "caisson:counter@1"
	CounterName   = "caisson:meter@1"
)

// Names of the exports that Rewrite adds, besides ForkName. A module that already exports one of
// them or CounterName, or that imports one or from MeterModule, CounterModule or ForkModule, is
// rejected.
const (
	depthName    = "caisson:depth@1"
	globalPrefix = "caisson:global@1:" // followed by the global's index
)

// DefaultStackBytes is the default of Passes.StackBytes. It is half of 20 MiB, because a stack
// grows by doubling.
const DefaultStackBytes = 10 << 20

// DepthExceeded is the value of the Passes.Depth global after a trap that the pass caused.
const DepthExceeded uint32 = 1<<32 - 1

// maxStackBytes keeps sums of frames within 32 bits.
const maxStackBytes = 1 << 30

// Passes selects the additions of [Rewrite] to a module. The zero value adds nothing.
type Passes struct {
	// Meter counts the guest's work and lets the host stop the guest. It adds a counter, a global
	// of type i64 that is initially 0. Each executed instruction deducts 1 unit before it runs,
	// memory.grow and table.grow 4,096, and bulk operations 1 unit per 16 bytes or per table
	// element, so equal runs use equal amounts. Block, loop, else, end and nop are free, but values
	// that are moved cost 1 unit per 128: by calls and branches, and where blocks end and loops begin.
	// The replacements of miscompiled instructions cost 1 unit for each instruction (miscompiled.go).
	//
	// At the next function entry, loop iteration or bulk operation at which the counter is negative,
	// the guest calls the import MeterRefill with the counter and continues with the result as the
	// new counter. Only there does metering return control to the host, which returns the next slice, or
	// fails and thereby ends the call. Nothing else leaves the guest's machine code, and Go's runtime cannot preempt that:
	// the next garbage collection stops all other goroutines and waits for the guest, so no goroutine is left to set a
	// flag for it. So slices must be small.
	//
	// The counter is tested again wherever some 4,096 units may have been used since the last test,
	// and where a function ends that does something after a callee has returned.
	//
	// A function with loops counts in a local, which it adds to the counter before it calls another function and where it
	// ends. A guest uses at most 65,536 units more than it was granted, which package metered proves. The counter may lack
	// some 16,384 after a trap. Instructions after a call are charged when it has returned, except after calls of short
	// functions without calls and loops.
	Meter bool
	// Linked imports the counter of Meter instead of defining and exporting it. Of modules that are linked, one defines it
	// and the others import it, so that a test in any of them sees the charges of all of them.
	Linked bool
	// Depth adds a global of type i32, initially 0, with the estimated stack in bytes that
	// recursive functions use. Before it would exceed StackBytes, the guest sets it to
	// DepthExceeded and traps (unreachable). After any trap the host must set it to 0 before it
	// calls the instance again.
	Depth bool
	// StackBytes is the maximum stack that Depth allows, in bytes. Zero means DefaultStackBytes; a
	// negative value, or one over 1 GiB, is an error.
	StackBytes int64
	// Frames are the minimum frame sizes, in bytes, that Depth assumes for the functions that the module defines, in their
	// order. For functions beyond its end, Depth uses only its estimate.
	Frames []int64
	// Globals exports the module's own mutable globals, so that the host can save and restore their values. Together with
	// the memory and the state that the other passes add, they are the whole state of an instance. If an instance has
	// other state, the module is Unrestorable and nothing is exported.
	Globals bool
	// Data removes the data segments and returns them, so that the host can write the memory of all instances once. It
	// must do so before the module runs anything. A start function runs during instantiation, so it must first become an
	// export (see [ExportStart]). If the host cannot reproduce the effects of instantiation, such as failing because a
	// segment is out of bounds, all segments stay, and DataKept gives the reason.
	Data bool
	// Fork lets each call of a WASI command start where the command first reads. It applies to modules that export _start,
	// a function without parameters and results, and import fd_read of WASI preview 1. Other modules are unchanged.
	//
	// It adds an export, the function ForkName without parameters and results, to call instead of
	// _start. ForkName calls the import ForkResume, of type () -> (i32), and then _start if that
	// returns 0. Wherever the module refers to its fd_read (in calls, segments and references, but not
	// in exports), Fork substitutes an added function. This function calls the import ForkReached, of
	// type (i32) -> (i32), with the file descriptor until that returns 0, and then calls fd_read.
	// So a host can save the stack in ForkReached. In later calls of ForkName it restores the stack
	// in ForkResume, which then does not return, with 1 as the result of ForkReached. The guest
	// calls ForkReached again, and the host can save a stack that has not been used yet. To end a
	// guest, a host can restore a stack that it saved in ForkResume, with 1.
	//
	// The value of Depth's global belongs to the stack and must be saved with it. In ForkReached,
	// as in any host function, Meter's counter is complete.
	Fork bool
}

// Frame is the estimate of a function's stack frame.
type Frame struct {
	Bytes     int64 // of the stack
	Recursive bool  // it can be on the stack more than once
}

// none reports whether no pass is selected.
func (p Passes) none() bool {
	return !p.Meter && !p.Depth && !p.Globals && !p.Data && !p.Fork
}

// Rewritten is the result of [Rewrite].
type Rewritten struct {
	// Source is the rewritten module. It shares no memory with the original.
	Source []byte
	// MeterGlobal and DepthGlobal are the export names of the globals that the passes added. They
	// are empty for a pass that did not run. With Passes.Linked, MeterGlobal is empty.
	MeterGlobal, DepthGlobal string
	// Frames are the assumed frames of the functions that the module defines, if Passes.Depth is set.
	Frames []Frame
	// FunctionShift is added to the index of each function that the module defines, because added
	// imports come before them. It is 1 with Passes.Meter, and 2 more with Forks.
	FunctionShift int
	// Recursive is the number of functions that Passes.Depth instrumented.
	Recursive int
	// ChainBytes is the estimated stack of the longest chain of calls, not counting instrumented
	// functions, if Passes.Depth is set.
	ChainBytes int64
	// Globals are the globals that Passes.Globals exported, in index order.
	Globals []ExportedGlobal
	// Unrestorable is the reason why an instance has state that the host cannot restore: the first
	// one that Passes.Globals found, as text for people. It is empty if there is none, or if the
	// pass did not run.
	Unrestorable string
	// Data are the active data segments that Passes.Data removed, in the order in which they must
	// be written, since they may overlap. Each lies within the memory's minimum.
	Data []Segment
	// DataKept is the reason why Passes.Data did not remove the segments, as text for people. It is
	// empty if they are in Data, if there are none, or if the pass did not run.
	DataKept string
	// Forks reports whether Passes.Fork was applied.
	Forks bool
}

// Rewrite applies the passes to a module. The analysis must be the result of [Validate] for the
// same bytes; otherwise the error is ErrUnvalidated. So an invalid module cannot become valid.
// Errors about the module are of type [*Error].
//
// A module behaves as before unless a pass stops it. Where wazero would compile it wrongly, it behaves as it should
// (miscompiled.go). The module itself cannot name the additions. If any pass runs, custom sections are removed, because
// their indices and offsets would be wrong. Without passes the result equals source. The result depends only on the
// arguments. If the context ends, the error is its cause.
func Rewrite(ctx context.Context, source []byte, a *Analysis, passes Passes) (*Rewritten, error) {
	if a == nil || a.digest != sha256.Sum256(source) {
		return nil, ErrUnvalidated
	}
	if passes.StackBytes < 0 || passes.StackBytes > maxStackBytes {
		return nil, fmt.Errorf("%w: StackBytes is %d; want 0 for the default, or up to %d", ErrBounds, passes.StackBytes,
			maxStackBytes)
	}
	if passes.StackBytes == 0 {
		passes.StackBytes = DefaultStackBytes
	}
	if passes.none() {
		return &Rewritten{Source: slices.Clone(source)}, nil
	}
	source, a, err := withoutMiscompiled(ctx, source, a)
	if err != nil {
		return nil, err
	}
	r := newRewriting(source, a, passes)
	if err := r.reserved(); err != nil {
		return nil, err
	}
	// The order of the passes is that of the code at a function's entry. Depth comes first, so that
	// everything else is inside its block.
	if passes.Depth {
		if err := r.addDepth(); err != nil {
			return nil, err
		}
	}
	r.addExits()
	if r.shift > 0 {
		r.pipeline = append(r.pipeline, &renumberPass{r: r})
	}
	references := &referencePass{globals: map[uint32]uint32{}}
	r.pipeline = append(r.pipeline, references)
	if passes.Meter {
		r.addMeter()
		if err := r.addBulk(); err != nil {
			return nil, err
		}
	}
	if r.fork != nil {
		r.addFork()
	}
	r.addReferences(references)
	if passes.Globals {
		r.exportGlobals()
	}
	if passes.Data {
		if err := r.liftData(); err != nil {
			return nil, err
		}
	}
	if err := r.assemble(ctx); err != nil {
		return nil, err
	}
	return &r.done, nil
}

// rewriting is a module while it is being rewritten: the original and the additions.
type rewriting struct {
	source   []byte
	module   *Module
	analysis *Analysis
	passes   Passes
	done     Rewritten

	importedFunctions uint32
	shift             uint32 // number of added imports, by which the module's own functions are renumbered
	ownGlobals        uint32 // index of the first global that the module defines
	globalShift       uint32 // number of added imports, by which the module's own globals are renumbered
	globals           uint32 // size of the global index space, including added ones
	functions         uint32 // size of the function index space, including added ones
	addedFunctions    uint32 // number of imports added so far

	types    typeIndex
	added    [SectionDataCount + 1]items // additions by section
	pipeline []pass
	meter    *meter
	depth    *depthPass // nil without Passes.Depth
	fork     *fork      // nil if Passes.Fork does not apply
	lifted   bool       // the data segments are removed
	dataLeft []byte     // the content of the data section then, if there is still one
}

// items are elements to append to a section's vector.
type items struct {
	n uint32
	encoder
}

// next returns the encoder for one more element.
func (i *items) next() *encoder {
	i.n++
	return &i.encoder
}

func newRewriting(source []byte, a *Analysis, passes Passes) *rewriting {
	r := &rewriting{source: source, module: a.module, analysis: a, passes: passes}
	r.importedFunctions, r.ownGlobals = a.module.imported(ExternFunction), a.module.imported(ExternGlobal)
	if passes.Meter && passes.Linked {
		r.globalShift = 1
	}
	r.globals = uint32(len(a.module.Globals)) + r.ownGlobals + r.globalShift
	if passes.Meter {
		r.shift++
	}
	if passes.Fork {
		r.fork = forkOf(a.module)
	}
	if r.fork != nil {
		r.shift += forkImports
	}
	r.done.FunctionShift = int(r.shift)
	r.functions = r.importedFunctions + r.shift + uint32(len(a.module.Functions))
	r.types.own = a.module.Types
	return r
}

// reserved rejects a module that uses reserved names.
func (r *rewriting) reserved() error {
	refuse := func(id SectionID, what, name string) error {
		at, _ := r.module.section(id)
		return &Error{Kind: ErrUnsupported, Section: id.String(), Offset: at.Offset,
			Message: fmt.Sprintf("%s %q, which is reserved", what, name)}
	}
	for _, export := range r.module.Exports {
		if isReserved(export.Name) {
			return refuse(SectionExport, "exports", export.Name)
		}
	}
	for _, imported := range r.module.Imports {
		if imported.Module == MeterModule || imported.Module == CounterModule || imported.Module == ForkModule {
			return refuse(SectionImport, "imports from", imported.Module)
		}
		if isReserved(imported.Name) { // of a module that is linked with it, perhaps
			return refuse(SectionImport, "imports", imported.Name)
		}
	}
	return nil
}

// isReserved reports whether Rewrite exports something under a name.
func isReserved(name string) bool {
	return name == CounterName || name == depthName || name == ForkName || strings.HasPrefix(name, globalPrefix)
}

// addGlobal adds a mutable global with the initial value 0 and exports it.
func (r *rewriting) addGlobal(t ValueType, name string) uint32 {
	index := r.globals
	r.globals++
	global := r.added[SectionGlobal].next()
	global.bytes = append(global.bytes, byte(t), 1)
	if t == I64 {
		global.i64(0).do(opEnd)
	} else {
		global.i32(0).do(opEnd)
	}
	r.addExport(name, ExternGlobal, index)
	return index
}

// addExport adds an export under a reserved name.
func (r *rewriting) addExport(name string, kind ExternKind, index uint32) {
	r.added[SectionExport].next().export(name, kind, index)
}

// export writes an export (§5.5.10).
func (e *encoder) export(name string, kind ExternKind, index uint32) {
	e.name(name)
	e.bytes = append(e.bytes, byte(kind))
	e.u32(index)
}

// addImport adds a function import after the existing imports.
func (r *rewriting) addImport(module, name string, t FuncType) uint32 {
	index := r.importedFunctions + r.addedFunctions
	r.addedFunctions++
	imported := r.added[SectionImport].next()
	imported.name(module)
	imported.name(name)
	imported.bytes = append(imported.bytes, byte(ExternFunction))
	imported.u32(r.typeIndex(t))
	return index
}

// importCounter adds the import of the counter after the existing imports.
func (r *rewriting) importCounter() uint32 {
	imported := r.added[SectionImport].next()
	imported.name(CounterModule)
	imported.name(CounterName)
	imported.bytes = append(imported.bytes, byte(ExternGlobal), byte(I64), 1)
	return r.ownGlobals
}

// addFunction adds a function at the end. It has no locals, and code includes the final end.
func (r *rewriting) addFunction(t FuncType, code []byte) uint32 {
	r.added[SectionFunction].next().u32(r.typeIndex(t))
	body := r.added[SectionCode].next()
	body.u32(uint32(len(code)) + 1)
	body.bytes = append(append(body.bytes, 0), code...)
	index := r.functions
	r.functions++
	return index
}

// typeIndex returns the index of a function type, adding the type if it is missing.
func (r *rewriting) typeIndex(t FuncType) uint32 {
	index, isNew := r.types.find(t)
	if isNew {
		r.added[SectionType].next().functionType(t)
	}
	return index
}

// typeIndex maps function types to their indices.
type typeIndex struct {
	own   []FuncType
	found map[string]uint32
}

// find returns the index of a type, and whether it added the type at the end.
func (i *typeIndex) find(t FuncType) (uint32, bool) {
	if i.found == nil {
		i.found = make(map[string]uint32, len(i.own))
		for n, own := range i.own {
			if _, twice := i.found[typeKey(own)]; !twice {
				i.found[typeKey(own)] = uint32(n)
			}
		}
		// Limit the capacity, so that append does not modify the module's own types.
		i.own = i.own[:len(i.own):len(i.own)]
	}
	key := typeKey(t)
	if index, found := i.found[key]; found {
		return index, false
	}
	index := uint32(len(i.own))
	i.own = append(i.own, t)
	i.found[key] = index
	return index, true
}

// typeKey returns a string that is equal for equal types.
func typeKey(t FuncType) string {
	key := make([]byte, 0, len(t.Params)+1+len(t.Results))
	for _, param := range t.Params {
		key = append(key, byte(param))
	}
	key = append(key, 0)
	for _, result := range t.Results {
		key = append(key, byte(result))
	}
	return string(key)
}
