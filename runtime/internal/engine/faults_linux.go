//go:build linux

package engine

import (
	goruntime "runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// faultWatch detects whether a run may have written pages of its memories for the first time. The
// kernel copies a page of a private mapping on its first write, in a page fault of the writing
// thread. So if a thread had no fault during a run, the run wrote only pages that earlier runs had
// written, and no scan is needed. getrusage(2) counts a thread's faults, including those of the
// kernel's own writes on its behalf. This holds for pages of the ordinary size. The zero value
// watches nothing. It serves one goroutine.
type faultWatch struct {
	watching bool
	before   int64
}

// begin starts the watch and locks the goroutine to its thread.
func (w *faultWatch) begin() {
	goruntime.LockOSThread()
	w.before, w.watching = threadFaults()
	if !w.watching {
		goruntime.UnlockOSThread()
	}
}

// locksThread reports whether the goroutine is locked to its thread.
func (w *faultWatch) locksThread() bool { return w.watching }

// stop ends the watch without a result.
func (w *faultWatch) stop() {
	if w.watching {
		w.watching = false
		goruntime.UnlockOSThread()
	}
}

// end ends the watch and reports whether there were certainly no faults.
func (w *faultWatch) end() bool {
	if !w.watching {
		return false
	}
	after, ok := threadFaults()
	w.stop()
	return ok && after == w.before
}

// threadFaults returns the number of page faults of this thread.
func threadFaults() (int64, bool) {
	const thread = 1 // RUSAGE_THREAD
	var usage unix.Rusage
	// A raw system call is enough: it does not block, and is too short to give up the processor.
	_, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, thread, uintptr(unsafe.Pointer(&usage)), 0)
	return int64(usage.Minflt) + int64(usage.Majflt), errno == 0
}
