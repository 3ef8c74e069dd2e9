//go:build linux && (amd64 || arm64)

package lastresort

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Timer ends the process at a given time, unless it is rearmed or disarmed before. It is not safe for concurrent use.
type Timer struct{ id int32 }

// The state of the handler. It may interrupt any thread at any point, so this memory never moves and is
// accessed atomically.
var (
	armed   uint32         // zero: signals are ignored
	strikes uint32         // expirations since it was armed
	timerID int32          // the kernel's
	text    unsafe.Pointer // to one of texts
	grace   itimerspec     // from the first expiration to the second
	texts   [2]message
	made    int32 // timers
)

type message struct {
	length uint64
	bytes  [MaxMessage]byte
}

// The kernel's structures.
type (
	timespec   struct{ seconds, nanoseconds int64 }
	itimerspec struct{ interval, value timespec }
	sigaction  struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}
	sigevent struct {
		value          uint64
		signal, notify int32
		rest           [48]byte
	}
)

const (
	// A real-time signal that neither Go nor other programs use.
	signal         = 63
	saSigInfo      = 0x4
	saOnStack      = 0x08000000
	saRestart      = 0x10000000
	sigevSignal    = 0
	clockMonotonic = 1
)

// Implemented in assembly.
func handlerAddress() uintptr
func restorerAddress() uintptr // zero if the kernel provides it

// New returns the timer. A process can have only one.
func New() (*Timer, error) {
	if !atomic.CompareAndSwapInt32(&made, 0, 1) {
		return nil, fmt.Errorf("%w: the process already has one", ErrUnavailable)
	}
	grace.value.nanoseconds = int64(Grace)
	action := sigaction{handler: handlerAddress(), flags: saSigInfo | saOnStack | saRestart, restorer: restorerAddress(),
		mask: ^uint64(0)}
	if action.restorer != 0 {
		action.flags |= saRestorer
	}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(&action)), 0, 8, 0,
		0); errno != 0 {
		return nil, fmt.Errorf("%w: rt_sigaction: %w", ErrUnavailable, errno)
	}
	event := sigevent{signal: signal, notify: sigevSignal}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_TIMER_CREATE, clockMonotonic, uintptr(unsafe.Pointer(&event)),
		uintptr(unsafe.Pointer(&timerID))); errno != 0 {
		return nil, fmt.Errorf("%w: timer_create: %w", ErrUnavailable, errno)
	}
	return &Timer{timerID}, nil
}

// Arm sets the time at which the process ends with [ExitCode], after writing the text to stderr unless
// that would block. A process that was suspended in the meantime has [Grace] to rearm the timer.
func (t *Timer) Arm(at time.Time, say string) {
	next := &texts[0]
	if atomic.LoadPointer(&text) == unsafe.Pointer(next) {
		next = &texts[1]
	}
	next.length = uint64(copy(next.bytes[:], say))
	atomic.StorePointer(&text, unsafe.Pointer(next))
	atomic.StoreUint32(&strikes, 0)
	atomic.StoreUint32(&armed, 1)
	t.set(max(time.Until(at), time.Millisecond))
	atomic.StoreUint32(&strikes, 0) // the previous time may have come in the meantime
}

// Disarm undoes Arm.
func (t *Timer) Disarm() {
	atomic.StoreUint32(&armed, 0)
	t.set(0)
}

// set sets the kernel's timer; zero stops it. It cannot fail for a timer that exists.
func (t *Timer) set(after time.Duration) {
	spec := itimerspec{value: timespec{int64(after / time.Second), int64(after % time.Second)}}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMER_SETTIME, uintptr(t.id), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}
