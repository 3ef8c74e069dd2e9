package hostfuncs

import "context"

// ValueType is the type of a parameter or result of a host function.
type ValueType byte

// The value types used by host functions, encoded as in WebAssembly core 2.0, §5.3.1.
const (
	I32 ValueType = 0x7f
	I64 ValueType = 0x7e
	F32 ValueType = 0x7d
	F64 ValueType = 0x7c
)

// Memory is the linear memory of one instance, as seen by a host function.
type Memory interface {
	// View returns length bytes of the guest's memory from offset, without copying, or false if the range is out of
	// bounds. The slice is valid until the host function returns; keep copies only. Write to it only in the goroutine
	// of the call: the engine may miss writes by other goroutines, which would then survive the instance's reset.
	View(offset, length uint32) ([]byte, bool)
}

// Function is a function that the host offers to guests. It keeps no state between
// calls. The state of a call is in its context.
type Function struct {
	Module  string // the module name in the import, such as "wasi_snapshot_preview1"
	Name    string
	Params  []ValueType
	Results []ValueType
	// Call runs the function. The stack holds the parameters, and the results overwrite them. The upper 32 bits of an
	// i32 are unspecified. An error terminates the guest at once, and the engine returns it as the cause. A failure
	// that the guest should handle is a result, not an error.
	//
	// Call must return soon after ctx is done, and must not panic on any input.
	Call func(ctx context.Context, memory Memory, stack []uint64) error
}
