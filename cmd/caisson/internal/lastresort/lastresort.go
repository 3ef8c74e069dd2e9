// Package lastresort ends a process that can no longer run Go code, for example because the garbage collector waits for
// a guest that never yields. On Linux, on amd64 and arm64, it uses a kernel timer whose signal handler is not written
// in Go: it writes a prepared message and exits. Other systems are not supported.
package lastresort

import (
	"errors"
	"time"
)

const (
	// ExitCode is the exit code of the process.
	ExitCode = 4
	// Grace is the time in which a process that was suspended when the timer expired must rearm it after it
	// is continued. The timer must be rearmed more often than that.
	Grace = 300 * time.Millisecond
	// MaxMessage is the maximum number of bytes that are written. A pipe accepts as many atomically.
	MaxMessage = 4096
)

// ErrUnavailable means that the timer cannot be made.
var ErrUnavailable = errors.New("no timer that ends the process")
