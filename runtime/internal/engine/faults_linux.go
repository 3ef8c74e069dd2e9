//go:build linux

package engine

import (
	goruntime "runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// faultWatch tells whether a run may have written pages of its memory for the first time. The
// kernel copies a page of a private mapping when it is first written, in a page fault of the
// thread that writes. So where a thread had no fault in a run, the run wrote no other pages
// than runs before it, and nobody need look for them: getrusage(2) counts a thread's faults,
// also those of the kernel's own writes for it. That holds for pages of the ordinary size. The
// zero value watches nothing. It serves one goroutine.
type faultWatch struct {
	watching bool
	before   int64
}

// begin watches the run that begins, and keeps it on its thread.
func (w *faultWatch) begin() {
	goruntime.LockOSThread()
	w.before, w.watching = threadFaults()
	if !w.watching {
		goruntime.UnlockOSThread()
	}
}

// stop ends the watch, of which nothing is known then.
func (w *faultWatch) stop() {
	if w.watching {
		w.watching = false
		goruntime.UnlockOSThread()
	}
}

// end ends the watch and reports whether it is sure that there were no faults.
func (w *faultWatch) end() bool {
	if !w.watching {
		return false
	}
	after, ok := threadFaults()
	w.stop()
	return ok && after == w.before
}

// threadFaults returns how many page faults this thread has had.
func threadFaults() (int64, bool) {
	const thread = 1 // RUSAGE_THREAD
	var usage unix.Rusage
	// Not as a system call that may block: it does not, and others cannot have the processor
	// in so short a time.
	_, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, thread, uintptr(unsafe.Pointer(&usage)), 0)
	return int64(usage.Minflt) + int64(usage.Majflt), errno == 0
}
