package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

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
			i.stack = saveCurrentStack(ctx)
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
			i.outermost = saveCurrentStack(ctx)
		}
		stack[0] = 0
	}
	_, err := runtime.NewHostModuleBuilder(wasm.ForkModule).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(reached), i32, i32).Export(wasm.ForkReached).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(resume), nil, i32).Export(wasm.ForkResume).
		Instantiate(ctx)
	return err
}

// saveCurrentStack saves the current stack, or ends the guest.
func saveCurrentStack(ctx context.Context) *savedStack {
	stack, err := saveStack(experimental.GetSnapshotter(ctx).Snapshot())
	if err != nil {
		panic(&hostError{err})
	}
	return stack
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

// structOf returns what a pointer to a struct points to, or the zero value.
func structOf(pointer reflect.Value) reflect.Value {
	if pointer.Kind() != reflect.Pointer || pointer.Type().Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return pointer.Elem()
}

// field returns a field of a struct, or the zero value.
func field(of reflect.Value, name string) reflect.Value {
	if of.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return of.FieldByName(name)
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
