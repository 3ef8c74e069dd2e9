package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// packedHead is the size of the header of each packed segment: its offset in memory and its length,
// each 32 bits in little-endian order.
const packedHead = 8

// errData means that packed segments do not fit the memory they were made for.
var errData = errors.New("damaged data segments")

// packData concatenates segments in the order in which they are written. The result shares no
// memory with them.
func packData(segments []wasm.Segment) []byte {
	length := 0
	for _, segment := range segments {
		length += packedHead + len(segment.Bytes)
	}
	if length == 0 {
		return nil
	}
	packed := make([]byte, 0, length)
	for _, segment := range segments {
		packed = binary.LittleEndian.AppendUint32(packed, segment.Offset)
		packed = binary.LittleEndian.AppendUint32(packed, uint32(len(segment.Bytes)))
		packed = append(packed, segment.Bytes...)
	}
	return packed
}

// writeData writes packed segments to a zeroed memory, as instantiation would. It returns the pages
// that it wrote to. It fails if the context ends: the first touch of each page takes a microsecond.
func writeData(ctx context.Context, memory, packed []byte) ([]pageSpan, error) {
	var spans []pageSpan
	written := 0 // since the last look at the context
	for len(packed) > 0 {
		if len(packed) < packedHead {
			return nil, errData
		}
		from, length := uint64(binary.LittleEndian.Uint32(packed)), uint64(binary.LittleEndian.Uint32(packed[4:]))
		packed = packed[packedHead:]
		if length > uint64(len(packed)) || from+length > uint64(len(memory)) {
			return nil, errData
		}
		for segment := range slices.Chunk(packed[:length], comparedBytes) {
			if written += len(segment) + imagePage; written > comparedBytes {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				written = 0
			}
			from += uint64(copy(memory[from:], segment))
		}
		packed = packed[length:]
		if length > 0 {
			spans = extend(spans, pagesOf(int(from-length), int(from)))
		}
	}
	return merged(spans), nil
}

// pageSpan is a run of pages, as offsets.
type pageSpan struct{ from, to int }

// imagePage is the granularity in which images are filled. It divides the size of every memory.
const imagePage = 4096

// pagesOf returns the pages of a byte range, which must not be empty.
func pagesOf(from, to int) pageSpan {
	return pageSpan{from &^ (imagePage - 1), (to + imagePage - 1) &^ (imagePage - 1)}
}

// extend adds a span. It merges the span into the last one if it begins within it or right after
// it: linkers emit segments in order, tens of thousands of them.
func extend(spans []pageSpan, next pageSpan) []pageSpan {
	if len(spans) > 0 {
		if last := &spans[len(spans)-1]; last.from <= next.from && next.from <= last.to {
			last.to = max(last.to, next.to)
			return spans
		}
	}
	return append(spans, next)
}

// merged returns the same pages, each once, in ascending order.
func merged(spans []pageSpan) []pageSpan {
	slices.SortFunc(spans, func(a, b pageSpan) int { return cmp.Compare(a.from, b.from) })
	ordered := spans[:0]
	for _, span := range spans {
		ordered = extend(ordered, span)
	}
	return ordered
}

// errStarted ends the start of a program when it first reads.
var errStarted = errors.New("the program has started")

// stdin is the file descriptor whose first read ends the start of a program.
const stdin = 0

// offerFork defines the imports that wasm.Passes.Fork adds. They do nothing in runs that do not
// belong to a program.
func offerFork(ctx context.Context, runtime wazero.Runtime) error {
	i32 := []api.ValueType{api.ValueTypeI32}
	reached := func(ctx context.Context, _ api.Module, stack []uint64) {
		i := forkedIn(ctx)
		if i != nil && i.stack == nil && uint32(stack[0]) == stdin {
			i.stack = saved(ctx)
			panic(&hostError{errStarted})
		}
		stack[0] = 0
	}
	resume := func(ctx context.Context, _ api.Module, stack []uint64) {
		switch i := forkedIn(ctx); {
		case i == nil:
		case i.stack != nil:
			i.stack.restore()
		case i.outermost == nil:
			i.outermost = saved(ctx)
		}
		stack[0] = 0
	}
	_, err := runtime.NewHostModuleBuilder(wasm.ForkModule).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(reached), i32, i32).Export(wasm.ForkReached).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(resume), nil, i32).Export(wasm.ForkResume).
		Instantiate(ctx)
	return err
}

// saved saves the current stack, or ends the guest.
func saved(ctx context.Context) *savedStack {
	stack, err := saveStack(experimental.GetSnapshotter(ctx).Snapshot())
	if err != nil {
		panic(&hostError{err})
	}
	return stack
}

// end ends the guest that called a host function, with an error. It does not return. A resumed
// guest is ended by restoring the stack from before it started. That is much cheaper than a panic
// through wazero, which records the guest's stack trace. A host function that has called the kernel gets the error, and
// ends the guest with it.
func (c *runContext) end(err error) {
	if c.inKernel == 0 && c.forked != nil && c.forked.stack != nil {
		c.ended = err
		c.forked.outermost.restore()
	}
	panic(&hostError{err})
}

// forkedIn returns the instance of the running program, or nil.
func forkedIn(ctx context.Context) *instance {
	if run := runOf(ctx); run != nil {
		return run.forked
	}
	return nil
}

// savedStack is the native stack of a program at the point where it was saved. wazero intends a
// snapshot to be restored once, since the program then runs on that stack. So the used part is
// copied back before each restore.
type savedStack struct {
	snapshot experimental.Snapshot
	base     uintptr // the address of the snapshot's stack
	size     int     // its size in bytes
	inUse    []byte  // its used part
	before   []byte  // the original contents of that
}

// errSnapshot means that a snapshot does not have the layout that this package knows from wazero
// v1.12.0.
var errSnapshot = errors.New("wazero snapshot has an unknown layout")

// mostSavedStack is the maximum of a program's native stack, in bytes, that is saved. Each start copies it while no
// test of the meter looks at the time.
const mostSavedStack = 4 << 20

// saveStack finds the stack inside a snapshot by reflection, since wazero does not export it.
func saveStack(s experimental.Snapshot) (*savedStack, error) {
	value := reflect.ValueOf(s)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: it is a %s", errSnapshot, value.Type())
	}
	pointer, top, stack := value.Elem().FieldByName("sp"), value.Elem().FieldByName("top"),
		value.Elem().FieldByName("stack")
	if pointer.Kind() != reflect.Uintptr || top.Kind() != reflect.Uintptr || stack.Kind() != reflect.Slice ||
		stack.Type().Elem().Kind() != reflect.Uint8 {
		return nil, fmt.Errorf("%w: it lacks sp, top or stack", errSnapshot)
	}
	bytes, base := stack.Bytes(), uint64(stack.Pointer())
	from, to := pointer.Uint()-base, top.Uint()-base
	if from > to || to > uint64(len(bytes)) {
		return nil, fmt.Errorf("%w: the used part is outside the stack", errSnapshot)
	}
	inUse := bytes[from:to]
	if len(inUse) > mostSavedStack {
		return nil,
			&NotStartedError{Reason: fmt.Sprintf("its stack has %d bytes at its first read, more than %d", len(inUse),
				mostSavedStack)}
	}
	return &savedStack{snapshot: s, base: stack.Pointer(), size: len(bytes), inUse: inUse, before: slices.Clone(inUse)},
		nil
}

// exported is an exported function of an instance, and its native stack, whose search would take a
// measurable part of a short run. The zero value is none.
type exported struct {
	api.Function
	stack reflect.Value // a slice of bytes that wazero does not export; the zero value if it cannot be found
	used  reflect.Value // a pointer into the stack on which the function last called the host
}

func exportOf(function api.Function) exported {
	of := structOf(reflect.ValueOf(function))
	stack, used := field(of, "stack"), field(field(of, "execCtx"), "stackPointerBeforeGoCall")
	if stack.Kind() != reflect.Slice || stack.Type().Elem().Kind() != reflect.Uint8 || used.Kind() != reflect.Pointer {
		return exported{Function: function}
	}
	return exported{function, stack, used}
}

// stackBytes returns the size of the function's native stack, or false if it is not known. A stack grows with
// recursion, to twice its size, and never shrinks. The one before it stays as long as wazero's pointer into it.
func (f *exported) stackBytes() (bytes int64, known bool) {
	if !f.stack.IsValid() {
		return 0, false
	}
	bytes = int64(f.stack.Len())
	if used := f.used.Pointer(); used != 0 && used-f.stack.Pointer() >= uintptr(bytes) {
		bytes += bytes / 2
	}
	return bytes, true
}

// restore resumes the guest where the stack was saved. It does not return.
func (s *savedStack) restore() {
	copy(s.inUse, s.before)
	s.snapshot.Restore([]uint64{1})
}

// image is the state that the instances of a module are reset to: linear memory, and the globals
// that the guest can change. It is immutable, and safe for concurrent use until it is closed.
type image struct {
	memory  []byte // read-only; its length is the size of linear memory
	globals []uint64
	file    imageFile
	bytes   int64    // what it takes of the host's memory
	beside  []*image // of the instances beside it, if the module has run; else nil
}

// newImage makes an image from copies of its arguments. Outside the spans, which are in ascending
// order, the memory is zero. Copying gigabytes takes seconds, so it fails if the context ends.
func newImage(ctx context.Context, memory []byte, spans []pageSpan, globals []uint64) (*image, error) {
	i := &image{globals: append([]uint64(nil), globals...)}
	if err := i.copyFrom(ctx, memory, spans); err != nil {
		return nil, err
	}
	return i, nil
}

// holding returns the size of the image and of the images of linked modules.
func (i *image) holding() holding {
	all := holding{i.bytes, i.placed(), i.files()}
	for _, b := range i.beside {
		all = all.plus(1, b.holding())
	}
	return all
}

// free closes the image and those beside it.
func (i *image) free() error {
	failures := []error{i.close()}
	for _, b := range i.beside {
		failures = append(failures, b.free())
	}
	return errors.Join(failures...)
}

// allOf returns a span that covers a whole memory.
func allOf(memory []byte) []pageSpan { return []pageSpan{{0, len(memory)}} }
