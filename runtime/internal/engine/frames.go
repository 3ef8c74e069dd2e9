package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero"
)

// framesError means that functions take far more of the native stack than estimated.
type framesError struct {
	frames []int64 // the size of each function's frame
}

func (e *framesError) Error() string {
	return "functions take far more of the stack than was estimated"
}

const (
	// mostUnderestimated is a factor. If a recursive function takes more than that many times its estimate, its module
	// is compiled again, with the exact numbers. So a call takes at most three times wasm.DefaultStackBytes, on a stack
	// that grows by doubling. Most functions take less than estimated. Small ones of C's and Rust's compilers take up to
	// 2.9 times as much, and large ones of Go's 2.8 times.
	mostUnderestimated = 3
	// mostExcess is the maximum number of bytes that all functions that are not recursive may take together beyond their
	// estimates.
	mostExcess = 256 << 10
)

// mostNativeCode is the maximum size of a module's native code, in bytes. wazero v1.12.0 on amd64 truncates the
// distance of a call to 32 bits. So a call to a function that is 2 GiB away jumps to an unrelated address, where
// another module may have constants of its choice.
const mostNativeCode = 1 << 30

// checkFrames returns an error if functions take far more than their estimates, or nil. The estimates follow the
// module's text. The values that a compiler keeps on the stack depend on more: on registers, on globals that it loads
// again, and on addresses that it computes once.
func (r rewritten) checkFrames(taken []int64) *framesError {
	large := &framesError{make([]int64, len(r.frames))}
	excess, recursive := int64(0), false
	for n, frame := range r.frames[:min(len(r.frames), len(taken))] {
		large.frames[n] = taken[n]
		if frame.Recursive {
			recursive = recursive || taken[n] > mostUnderestimated*frame.Bytes
		} else {
			excess += max(0, taken[n]-frame.Bytes)
		}
	}
	if !recursive && excess <= mostExcess {
		return nil
	}
	return large
}

// errNoFrames means that wazero differs from the version that this code was written for. Its version is pinned.
var errNoFrames = errors.New("what functions take of the stack cannot be read from their machine code")

// framesOf returns the number of bytes that each function of a module takes of the native stack, including the
// arguments of its calls. It reads them from the machine code: each function of wazero v1.12.0 begins with a check of
// whether the stack has room. wazero exports neither the code nor its offsets. The frames are known only on amd64.
func framesOf(text []byte, offsets reflect.Value) (frames []int64, err error) {
	if !offsets.IsValid() {
		return nil, errNoFrames
	}
	for n := range offsets.Len() {
		at := offsets.Index(n).Int()
		if at < 0 || at > int64(len(text)) {
			return nil, errNoFrames
		}
		frame := frameAt(text[at:])
		if frame == 0 {
			return nil, errNoFrames
		}
		frames = append(frames, frame)
	}
	return frames, nil
}

// machineCode returns the machine code of a module, and where its functions begin, or the zero values.
func machineCode(code wazero.CompiledModule) (text []byte, offsets reflect.Value) {
	module := structOf(reflect.ValueOf(code))
	id, engine := field(structOf(field(module, "module")), "ID"), field(module, "compiledEngine")
	if engine.Kind() != reflect.Interface || !id.IsValid() {
		return nil, reflect.Value{}
	}
	of := structOf(engine.Elem())
	compiled, guard := field(of, "compiledModules"), field(of, "mux")
	if compiled.Kind() != reflect.Map || !guard.CanAddr() || guard.Type() != reflect.TypeFor[sync.RWMutex]() {
		return nil, reflect.Value{}
	}
	lock := (*sync.RWMutex)(unsafe.Pointer(guard.UnsafeAddr()))
	lock.RLock()
	defer lock.RUnlock()
	found := structOf(field(structOf(compiled.MapIndex(id)), "compiledModule"))
	native, offsets := field(structOf(field(found, "executables")), "executable"), field(found, "functionOffsets")
	if native.Kind() != reflect.Slice || offsets.Kind() != reflect.Slice {
		return nil, reflect.Value{}
	}
	return native.Bytes(), offsets
}

// frameAt returns the size for which a function of wazero v1.12.0 on amd64 checks the stack, or 0 if the function does
// not begin as expected: push %rbp, mov %rsp, %rbp, sub $size, %rsp.
func frameAt(code []byte) int64 {
	rest, ok := bytes.CutPrefix(code, []byte{0x55, 0x48, 0x89, 0xe5})
	switch {
	case !ok || len(rest) < 7 || rest[0] != 0x48 || rest[2] != 0xec:
		return 0
	case rest[1] == 0x83:
		return int64(int8(rest[3]))
	case rest[1] == 0x81:
		return int64(int32(binary.LittleEndian.Uint32(rest[3:])))
	}
	return 0
}
