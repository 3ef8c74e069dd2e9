package runtime

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// errBusy means that a call found no room to run.
var errBusy = errors.New("busy")

// gate bounds how many calls run at a time. It has no queue: the executor has one. It is safe for
// concurrent use.
type gate struct {
	most    int64
	running atomic.Int64
}

// enter admits a call, or fails with errBusy. Each admitted call must leave. A call that is refused
// never counts, so it cannot make another one fail that there is room for.
func (g *gate) enter() error {
	for {
		running := g.running.Load()
		if running >= g.most {
			return fmt.Errorf("%w: %d calls are running", errBusy, g.most)
		}
		if g.running.CompareAndSwap(running, running+1) {
			return nil
		}
	}
}

// enterNow admits a call that must not be refused, however many are running. It must leave too.
func (g *gate) enterNow() { g.running.Add(1) }

func (g *gate) leave() { g.running.Add(-1) }
