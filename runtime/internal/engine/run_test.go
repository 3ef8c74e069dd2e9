package engine

import (
	"context"
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// with returns a context for calls of functions that are metered and have no memory.
func (m *meter) with(ctx context.Context) context.Context {
	return &runContext{Context: ctx, meter: m}
}

// memoryOf returns the instance's memory, which for a module without one is a nil pointer of
// wazero's inside a non-nil interface.
func memoryOf(module api.Module) (api.Memory, bool) {
	m := module.Memory()
	return m, !reflect.ValueOf(m).IsNil()
}

// alone keeps the engine from doing anything in the background.
func (e *Engine) alone() {
	for range cap(e.starts) {
		e.starts <- struct{}{}
	}
}

// memoryView shows wazero's memory to host functions.
type memoryView struct{ api.Memory }

// View implements hostfuncs.Memory.
func (m memoryView) View(offset, length uint32) ([]byte, bool) { return m.Read(offset, length) }
