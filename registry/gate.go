package registry

import "sync"

// gate counts the calls that run in one tool, over all registries that share it, so
// that the tool is closed after the last of them and gets none afterwards.
type gate struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when the gate is closed and no call runs
}

func newGate() *gate { return &gate{idle: make(chan struct{})} }

// enter lets one call in, or returns false if the gate is closed.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running++
	return true
}

// leave ends a call that was let in.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.closed && g.running == 0 {
		close(g.idle)
	}
}

// close lets no more calls in. It must be called once.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.running == 0 {
		close(g.idle)
	}
}
