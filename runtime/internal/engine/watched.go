package engine

import (
	"errors"
	"sync/atomic"

	"github.com/caisson-run/caisson/hostfuncs"
)

// errAbandoned ends a run that was abandoned, should it call the host once more.
var errAbandoned = errors.New("nobody waits for this run any more")

// Watched is what others see of a run that is under way, and do about it. The zero value is ready
// for one run. It is safe for concurrent use.
type Watched struct {
	function  atomic.Pointer[hostfuncs.Function] // that the guest is in; nil while it runs its own code
	abandoned atomic.Bool
}

// Function returns the host function that the guest is in, such as "wasi_snapshot_preview1.fd_read",
// or "" while it runs code of its own.
func (w *Watched) Function() string {
	if f := w.function.Load(); f != nil {
		return f.Module + "." + f.Name
	}
	return ""
}

// Abandon has the run end as soon as it calls the host, and its instance thrown away.
func (w *Watched) Abandon() { w.abandoned.Store(true) }

// enter notes that the guest calls a host function. It returns false where the guest must end.
func (w *Watched) enter(f *hostfuncs.Function) bool {
	if w == nil {
		return true
	}
	if w.abandoned.Load() {
		return false
	}
	w.function.Store(f)
	return true
}

func (w *Watched) leave() {
	if w != nil {
		w.function.Store(nil)
	}
}

// isAbandoned reports whether nobody waits for the run any more.
func (w *Watched) isAbandoned() bool { return w != nil && w.abandoned.Load() }
