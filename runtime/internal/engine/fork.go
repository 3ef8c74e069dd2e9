package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

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
