package executor

import (
	"context"
	"sync"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/schema"
)

// made holds what is made of each tool's parameters, by registered name, when it is first needed. That
// takes longer than a call may be late where the schema is large: it is made once, apart from the calls,
// which leave when their time is over. The zero value is empty. It is safe for concurrent use.
type made[T any] struct {
	mu     sync.RWMutex
	byTool map[string]*madeOf[T]
}

// madeOf goes with one schema: a tool that is loaded again has another one.
type madeOf[T any] struct {
	schema *schema.Schema
	done   chan struct{} // closed when the others are known
	value  T
	err    error
}

// of returns what was made for a tool, which begins if it is the first time. The error may be that of
// a ctx that has ended.
func (a *made[T]) of(ctx context.Context, m *manifests.Manifest, do func() (T, error)) (T, error) {
	known := a.begin(m, do)
	select {
	case <-known.done:
		return known.value, known.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (a *made[T]) begin(m *manifests.Manifest, do func() (T, error)) *madeOf[T] {
	a.mu.RLock()
	known := a.byTool[m.Name]
	a.mu.RUnlock()
	if known != nil && known.schema == m.Parameters {
		return known
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if known = a.byTool[m.Name]; known != nil && known.schema == m.Parameters {
		return known
	}
	known = &madeOf[T]{schema: m.Parameters, done: make(chan struct{})}
	if a.byTool == nil {
		a.byTool = map[string]*madeOf[T]{}
	}
	a.byTool[m.Name] = known
	go func() {
		defer close(known.done)
		known.err = apart(func() (err error) {
			known.value, err = do()
			return err
		})
	}()
	return known
}
