package wasm

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnvalidated means that [Rewrite] was called with an [Analysis] of other bytes.
var ErrUnvalidated = errors.New("module was not validated")

// MeterModule and MeterRefill name the import that Passes.Meter adds, of type (i64) -> (i64).
const (
	MeterModule = "caisson:meter@1"
	MeterRefill = "refill"
)

// Names of the exports that Rewrite adds, beside ForkName. A module that has one of them,
// or imports from MeterModule or ForkModule, is refused.
const (
	meterName    = "caisson:meter@1"
	depthName    = "caisson:depth@1"
	globalPrefix = "caisson:global@1:" // and the global's index
)

// DefaultStackBytes is the stack that calls may use where [Passes] does not say: half of
// 16 MiB, because a stack grows by doubling.
const DefaultStackBytes = 8 << 20

// DepthExceeded is the value of the global of Passes.Depth after a trap that it caused.
const DepthExceeded uint32 = 1<<32 - 1

// maxStackBytes keeps sums of frames within 32 bits.
const maxStackBytes = 1 << 30

// Passes says what [Rewrite] adds to a module. The zero value adds nothing.
type Passes struct {
	// Meter counts what the guest does, and lets the host stop it. It adds a counter, a
	// global of type i64, at first 0, from which each executed instruction takes 1 unit
	// before it is executed, memory.grow and table.grow 4,096, and bulk operations 1 for
	// each 16 bytes or each table element, so that equal runs take equal amounts. Block,
	// loop, else, end and nop are free. Where the counter is negative, the guest calls the
	// import MeterRefill with it at the next function entry, round of a loop or bulk
	// operation, and continues with the result as the counter. The host gets to run there,
	// and nowhere else: it returns the next slice, or fails and so ends the call. Slices must
	// be small, because a guest cannot be preempted within one, not even by Go's garbage
	// collector, which stops the whole process to wait for it.
	//
	// Wherever some 8,000 units may have been used since the counter was looked at, it is looked
	// at again, and where a function ends that has called others.
	//
	// A function with loops counts in a local, which it adds to the counter before it calls
	// another function and where it ends. So a guest may use some 16,384 units more than it was
	// given, or with loops twice that, and as much is missing from the counter after a trap.
	// What stands behind a call is counted before it, up to the next branch, even where the
	// call never returns, as one of proc_exit.
	Meter bool
	// Depth adds a global of type i32, at first 0, with the estimated bytes of stack that
	// recursive functions use. Before it exceeds StackBytes, the guest sets it to
	// DepthExceeded and traps (unreachable). After any trap the host must set it to 0
	// before it calls the instance again.
	Depth bool
	// StackBytes is the stack that Depth allows, in bytes: zero means
	// DefaultStackBytes; negative, or over 1 GiB, is an error.
	StackBytes int64
	// Globals exports the module's own mutable globals, so that the host can save their
	// values and put them back. Together with the memory and what the other passes add,
	// they are all that an instance is made of; a module of which that is not true is
	// Unrestorable, and nothing is exported.
	Globals bool
	// Data leaves the data segments out and returns them, so that the host can write the
	// memory of all instances once. It must do so before anything of the module runs: a
	// start function, which runs while the module is instantiated, has to become an export
	// first (see [ExportStart]). Where the host cannot do the same as instantiation does,
	// such as to fail because a segment is out of bounds, all segments stay, and DataKept
	// says why.
	Data bool
	// Fork lets each call of a WASI command start where the command first reads. It is
	// for modules that export _start, a function without parameters and results, and
	// import fd_read of WASI preview 1; others stay as they are.
	//
	// It adds an export, the function ForkName without parameters and results, to call in
	// place of _start: it calls the import ForkResume, of type () -> (i32), and then _start
	// if that returns 0.
	// And wherever the module names its fd_read, in calls as in segments, references and
	// exports, it has an added function instead, which calls the import ForkReached, of type
	// (i32) -> (i32), with the file descriptor until that returns 0, and then fd_read. So a
	// host can save the stack in ForkReached. In later calls of ForkName it puts the stack
	// back in ForkResume, which then does not return, with 1 for what ForkReached returns:
	// the guest asks again, and the host can save a stack that was not used yet. To end a
	// guest, a host can put back a stack that it saved in ForkResume, with 1.
	//
	// The value of Depth's global belongs to the stack, and is to be saved with it. Nothing
	// is missing from Meter's counter in ForkReached, as in any function of the host.
	Fork bool
}

// none reports whether no pass is to run.
func (p Passes) none() bool {
	return !p.Meter && !p.Depth && !p.Globals && !p.Data && !p.Fork
}

// Rewritten is a module that [Rewrite] made.
type Rewritten struct {
	// Source is the module. It shares no memory with the original.
	Source []byte
	// MeterGlobal and DepthGlobal are the names under which the globals of the passes are
	// exported; empty for a pass that did not run.
	MeterGlobal, DepthGlobal string
	// FunctionShift is by how much the index of each function that the module defines
	// grew, because added imports come before them: 1 with Passes.Meter, and 2 more with
	// Forks.
	FunctionShift int
	// Recursive is the number of functions that Passes.Depth instrumented.
	Recursive int
	// ChainBytes is the estimated stack of the longest chain of calls without the
	// functions that are instrumented, if Passes.Depth is set.
	ChainBytes int64
	// Globals are what Passes.Globals exported, in the order of the globals' indices.
	Globals []ExportedGlobal
	// Unrestorable is why an instance has state that the host cannot put back, in words for
	// people: the first reason that Passes.Globals found. Empty: there is none, or the pass
	// did not run.
	Unrestorable string
	// Data are the active data segments that Passes.Data left out, in the order in which
	// they have to be written: they may overlap. Each lies within the memory's minimum.
	Data []Segment
	// DataKept is why Passes.Data left the segments where they are, in words for people.
	// Empty: they are in Data, there are none, or the pass did not run.
	DataKept string
	// Forks: Passes.Fork was applied.
	Forks bool
}

// Rewrite adds the passes to a module. The analysis must be what [Validate] returned for
// the same bytes, else the error is ErrUnvalidated; so an invalid module cannot become a
// valid one. An error about the module is an [*Error].
//
// A module behaves as before as long as no pass stops it. What is added cannot be named
// from within the module. Custom sections are left out if any pass runs, because their
// indices and offsets would no longer be right; without passes the result is equal to
// source. The result depends on the arguments alone.
func Rewrite(source []byte, a *Analysis, passes Passes) (*Rewritten, error) {
	if a == nil || a.digest != sha256.Sum256(source) {
		return nil, ErrUnvalidated
	}
	if passes.StackBytes < 0 || passes.StackBytes > maxStackBytes {
		return nil, fmt.Errorf("%w: StackBytes is %d; want 0 for the default, or up to %d", ErrBounds, passes.StackBytes, maxStackBytes)
	}
	if passes.StackBytes == 0 {
		passes.StackBytes = DefaultStackBytes
	}
	r := newRewriting(source, a, passes)
	if passes.none() {
		r.done.Source = slices.Clone(source)
		return &r.done, nil
	}
	if err := r.reserved(); err != nil {
		return nil, err
	}
	// The order is that of the code at a function's entry. Depth comes first, so that all
	// else stands within its block.
	if passes.Depth {
		if err := r.addDepth(); err != nil {
			return nil, err
		}
	}
	r.addExits()
	if r.shift > 0 {
		r.pipeline = append(r.pipeline, &renumberPass{r: r})
	}
	if passes.Meter {
		r.addMeter()
		r.addBulk()
	}
	if r.fork != nil {
		r.addFork()
	}
	if passes.Globals {
		r.exportGlobals()
	}
	if passes.Data {
		if err := r.liftData(); err != nil {
			return nil, err
		}
	}
	if err := r.assemble(); err != nil {
		return nil, err
	}
	return &r.done, nil
}

// rewriting is a module while it is being rewritten: the original, and what is added.
type rewriting struct {
	source   []byte
	module   *Module
	analysis *Analysis
	passes   Passes
	done     Rewritten

	importedFunctions uint32
	shift             uint32 // added to the index of each function of the module's own: the imports that are added
	globals           uint32 // size of the global index space, with those that are added
	functions         uint32 // size of the function index space, with those that are added

	types    typeIndex
	added    [SectionDataCount + 1]items // what is added, by section
	pipeline []pass
	meter    *meter
	depth    *depthPass // nil without Passes.Depth
	fork     *fork      // nil where Passes.Fork does not apply
	lifted   bool       // the data segments are left out
}

// items are elements that are added to a section's vector.
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
	r.globals = uint32(len(a.module.Globals))
	for _, imported := range a.module.Imports {
		switch imported.Kind {
		case ExternFunction:
			r.importedFunctions++
		case ExternGlobal:
			r.globals++
		}
	}
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

// reserved refuses a module that uses the names of what is added.
func (r *rewriting) reserved() error {
	refuse := func(id SectionID, what, name string) error {
		at, _ := r.module.section(id)
		return &Error{Kind: ErrUnsupported, Section: id.String(), Offset: at.Offset,
			Message: fmt.Sprintf("%s %q, which is reserved", what, name)}
	}
	for _, export := range r.module.Exports {
		if export.Name == meterName || export.Name == depthName || export.Name == ForkName || strings.HasPrefix(export.Name, globalPrefix) {
			return refuse(SectionExport, "exports", export.Name)
		}
	}
	for _, imported := range r.module.Imports {
		if imported.Module == MeterModule || imported.Module == ForkModule {
			return refuse(SectionImport, "imports from", imported.Module)
		}
	}
	return nil
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

// addExport exports something under a name that is reserved.
func (r *rewriting) addExport(name string, kind ExternKind, index uint32) {
	export := r.added[SectionExport].next()
	export.name(name)
	export.bytes = append(export.bytes, byte(kind))
	export.u32(index)
}

// addImport adds a function to the imports, behind those that are there.
func (r *rewriting) addImport(module, name string, t FuncType) uint32 {
	index := r.importedFunctions + r.added[SectionImport].n
	imported := r.added[SectionImport].next()
	imported.name(module)
	imported.name(name)
	imported.bytes = append(imported.bytes, byte(ExternFunction))
	imported.u32(r.typeIndex(t))
	return index
}

// addFunction adds a function behind all others. Its code is without locals, and with
// its end.
func (r *rewriting) addFunction(t FuncType, code []byte) uint32 {
	r.added[SectionFunction].next().u32(r.typeIndex(t))
	body := r.added[SectionCode].next()
	body.u32(uint32(len(code)) + 1)
	body.bytes = append(append(body.bytes, 0), code...)
	index := r.functions
	r.functions++
	return index
}

// typeIndex returns the index of a function type, which it adds if it is not there.
func (r *rewriting) typeIndex(t FuncType) uint32 {
	index, isNew := r.types.find(t)
	if isNew {
		r.added[SectionType].next().functionType(t)
	}
	return index
}

// typeIndex finds types by what they are.
type typeIndex struct {
	own   []FuncType
	found map[string]uint32
}

// find returns the index of a type, and whether it is a new one behind all others.
func (i *typeIndex) find(t FuncType) (uint32, bool) {
	if i.found == nil {
		i.found = make(map[string]uint32, len(i.own))
		for n, own := range i.own {
			if _, twice := i.found[typeKey(own)]; !twice {
				i.found[typeKey(own)] = uint32(n)
			}
		}
		// Types that are added count from here on.
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

// typeKey is equal for equal types.
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
