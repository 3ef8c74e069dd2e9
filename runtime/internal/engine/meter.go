package engine

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Metering is how the work of a module is counted.
type Metering int

// The two forms.
const (
	// MeterSlices counts an upper bound, so that guests come back to Go now and then.
	MeterSlices Metering = iota
	// MeterFuel counts exactly, which takes a little more time: equal runs take equal
	// fuel.
	MeterFuel
)

// ErrFuel: the guest used up its fuel.
var ErrFuel = errors.New("fuel limit")

// slice is how many units of work a guest does between two looks at the clock: less than
// some milliseconds, of which the garbage collector may have to wait for one slice of each
// guest that runs, and long enough for a look to cost nothing.
const slice = 4_000_000

// meter is the fuel of one run.
type meter struct {
	limit   int64 // 0 for a module that is not metered by fuel
	granted int64
}

// meterKey is where a run's meter stands in its context.
type meterKey struct{}

// offerMeter offers what rewritten modules call when a slice is used up. Coming back to Go
// now and then is what lets a guest be stopped at all: the collector cannot interrupt the
// code of guests, and while it waits for one, nothing else runs that could stop it.
func offerMeter(ctx context.Context, runtime wazero.Runtime) error {
	refill := func(ctx context.Context, _ api.Module, stack []uint64) {
		if ctx.Err() != nil {
			panic(&hostError{context.Cause(ctx)})
		}
		m, _ := ctx.Value(meterKey{}).(*meter)
		if m == nil || m.limit == 0 {
			stack[0] = slice
			return
		}
		left, ok := m.refill(int64(stack[0]))
		if !ok {
			panic(&hostError{&Error{Op: "run", Kind: ErrFuel}})
		}
		stack[0] = uint64(left)
	}
	_, err := runtime.NewHostModuleBuilder(wasm.MeterModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refill), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(wasm.MeterRefill).Instantiate(ctx)
	return err
}

// refill grants the next slice to a guest whose counter is below zero. It returns the new
// counter, or false when the guest owes more than is left of the limit.
func (m *meter) refill(counter int64) (int64, bool) {
	grant := min(m.limit-m.granted, max(slice, -counter))
	m.granted += grant
	return counter + grant, counter+grant >= 0
}

// used returns the fuel that was taken, given the counter at the end. It may be more than
// the limit: a guest is stopped where it asks for more, which is not at every instruction.
func (m *meter) used(counter int64) int64 { return m.granted - counter }
