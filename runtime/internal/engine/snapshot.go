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

// packedHead is how many bytes of packed data come before those of each segment: its offset
// in memory and its length, 32 bits each in little-endian order.
const packedHead = 8

// errData means that packed segments do not fit the memory that they were made for.
var errData = errors.New("damaged data segments")

// packData puts segments one behind the other, in the order in which they are written. The
// result shares no memory with them.
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

// writeData writes packed segments to a memory of zeros, as instantiation would. It returns
// the pages that it wrote to.
func writeData(memory, packed []byte) ([]pageSpan, error) {
	var spans []pageSpan
	for len(packed) > 0 {
		if len(packed) < packedHead {
			return nil, errData
		}
		from, length := uint64(binary.LittleEndian.Uint32(packed)), uint64(binary.LittleEndian.Uint32(packed[4:]))
		packed = packed[packedHead:]
		if length > uint64(len(packed)) || from+length > uint64(len(memory)) {
			return nil, errData
		}
		copy(memory[from:], packed[:length])
		packed = packed[length:]
		if length > 0 {
			spans = extend(spans, pagesOf(int(from), int(from+length)))
		}
	}
	return merged(spans), nil
}

// pageSpan is a run of pages, as offsets.
type pageSpan struct{ from, to int }

// imagePage is the unit in which images are filled. It divides the size of every memory.
const imagePage = 4096

// pagesOf returns the pages of some bytes, of which there is one at least.
func pagesOf(from, to int) pageSpan {
	return pageSpan{from &^ (imagePage - 1), (to + imagePage - 1) &^ (imagePage - 1)}
}

// extend adds a span, which becomes a part of the last one if it begins there or right behind:
// linkers put segments in order, tens of thousands of them.
func extend(spans []pageSpan, next pageSpan) []pageSpan {
	if len(spans) > 0 {
		if last := &spans[len(spans)-1]; last.from <= next.from && next.from <= last.to {
			last.to = max(last.to, next.to)
			return spans
		}
	}
	return append(spans, next)
}

// merged returns the same pages, each once and in ascending order.
func merged(spans []pageSpan) []pageSpan {
	slices.SortFunc(spans, func(a, b pageSpan) int { return cmp.Compare(a.from, b.from) })
	ordered := spans[:0]
	for _, span := range spans {
		ordered = extend(ordered, span)
	}
	return ordered
}

// errStarted ends the start of a program, once it reads.
var errStarted = errors.New("the program has started")

// stdin is the file descriptor whose first read ends the start of a program.
const stdin = 0

// offerFork offers what wasm.Passes.Fork imports. In runs that are not a program's they do
// nothing.
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

// saved saves the stack as it is, or ends the guest.
func saved(ctx context.Context) *savedStack {
	stack, err := saveStack(experimental.GetSnapshotter(ctx).Snapshot())
	if err != nil {
		panic(&hostError{err})
	}
	return stack
}

// end ends the guest that called a host function, with an error. It does not return. Where
// the guest is resumed it goes back to before the guest began, which is much cheaper than a
// panic through wazero: that writes down the guest's stack for a trace.
func (c *runContext) end(err error) {
	if c.forked != nil && c.forked.stack != nil {
		c.ended = err
		c.forked.outermost.restore()
	}
	panic(&hostError{err})
}

// forkedIn returns the instance of the program that is running, or nil.
func forkedIn(ctx context.Context) *instance {
	if run := runOf(ctx); run != nil {
		return run.forked
	}
	return nil
}

// savedStack is the native stack of a program where it was when it was saved. wazero means a
// snapshot to be restored once, since the program then runs on it; so the part in use is
// copied back before each time.
type savedStack struct {
	snapshot experimental.Snapshot
	inUse    []byte // of the snapshot's stack
	before   []byte // what it held
}

// errSnapshot means that a snapshot is not what this package knows of wazero v1.12.0.
var errSnapshot = errors.New("a snapshot of wazero has another layout")

// saveStack reads where a snapshot keeps its stack, which wazero does not tell.
func saveStack(s experimental.Snapshot) (*savedStack, error) {
	value := reflect.ValueOf(s)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: it is a %s", errSnapshot, value.Type())
	}
	pointer, top, stack := value.Elem().FieldByName("sp"), value.Elem().FieldByName("top"), value.Elem().FieldByName("stack")
	if pointer.Kind() != reflect.Uintptr || top.Kind() != reflect.Uintptr || stack.Kind() != reflect.Slice || stack.Type().Elem().Kind() != reflect.Uint8 {
		return nil, fmt.Errorf("%w: it lacks sp, top or stack", errSnapshot)
	}
	bytes, base := stack.Bytes(), uint64(stack.Pointer())
	from, to := pointer.Uint()-base, top.Uint()-base
	if from > to || to > uint64(len(bytes)) {
		return nil, fmt.Errorf("%w: the stack does not hold what is in use", errSnapshot)
	}
	inUse := bytes[from:to]
	return &savedStack{snapshot: s, inUse: inUse, before: append([]byte(nil), inUse...)}, nil
}

// nativeStack returns how many bytes of native stack a function has, which wazero does not
// tell, and false where it cannot be seen. A stack grows with recursion, and never shrinks.
func nativeStack(function api.Function) (int, bool) {
	value := reflect.ValueOf(function)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return 0, false
	}
	stack := value.Elem().FieldByName("stack")
	if stack.Kind() != reflect.Slice || stack.Type().Elem().Kind() != reflect.Uint8 {
		return 0, false
	}
	return stack.Len(), true
}

// restore makes the guest go on where the stack was saved. It does not return.
func (s *savedStack) restore() {
	copy(s.inUse, s.before)
	s.snapshot.Restore([]uint64{1})
}

// image is what the instances of a module are set back to: linear memory, and the globals
// that the guest can change. It is immutable and safe for concurrent use, until it is
// closed.
type image struct {
	memory  []byte // read-only; its length is the size of linear memory
	globals []uint64
	file    imageFile
}

// newImage makes an image of copies. Outside of the spans, which are in ascending order, the
// memory is zero.
func newImage(memory []byte, spans []pageSpan, globals []uint64) (*image, error) {
	i := &image{globals: append([]uint64(nil), globals...)}
	if err := i.copyFrom(memory, spans); err != nil {
		return nil, err
	}
	return i, nil
}

// allOf is the whole of a memory.
func allOf(memory []byte) []pageSpan { return []pageSpan{{0, len(memory)}} }
