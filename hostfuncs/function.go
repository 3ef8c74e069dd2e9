package hostfuncs

import "context"

// ValueType is the type of a parameter or result of a host function.
type ValueType byte

// The value types that host functions use, encoded as in WebAssembly core 2.0, §5.3.1.
const (
	I32 ValueType = 0x7f
	I64 ValueType = 0x7e
)

// Memory is the linear memory of one instance, as a host function sees it.
type Memory interface {
	// View returns the bytes from offset on, as a window on the guest's memory, or
	// false if any of them lies outside it. The window is valid until the host
	// function returns: keep copies only. Write to it in the goroutine of the call: what
	// others write may not be seen to be written, and stay.
	View(offset, length uint32) ([]byte, bool)
}

// Function is a function that the host offers to guests. It keeps no state between
// calls: what belongs to a call travels in its context.
type Function struct {
	Module  string // as in the guest's import, such as "wasi_snapshot_preview1"
	Name    string
	Params  []ValueType
	Results []ValueType
	// Call runs the function. The parameters stand in stack, which the results
	// overwrite; the upper half of an i32's word may hold anything. An error ends the guest at once and comes back from the engine as
	// the cause; what the guest is meant to handle is a result, not an error.
	//
	// Call must return soon after ctx is done, and must not panic on any input.
	Call func(ctx context.Context, memory Memory, stack []uint64) error
}
