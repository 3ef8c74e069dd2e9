package runtime

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// errBusy means that a call found no room to run.
var errBusy = errors.New("busy")

// gate lets so many calls run at a time, and no call wait: the queue is the executor's. It is safe for
// concurrent use.
type gate struct {
	most    int64
	running atomic.Int64
}

// enter lets a call in, or fails with errBusy. Every call that it lets in must leave.
func (g *gate) enter() error {
	if g.running.Add(1) > g.most {
		g.running.Add(-1)
		return fmt.Errorf("%w: %d calls are running", errBusy, g.most)
	}
	return nil
}

// enterNow lets a call in that must not be refused, whatever runs. It must leave as any.
func (g *gate) enterNow() { g.running.Add(1) }

func (g *gate) leave() { g.running.Add(-1) }
