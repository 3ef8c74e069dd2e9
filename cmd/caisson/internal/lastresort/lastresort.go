// Package lastresort ends a process in which nothing of Go's runs any more, as when the garbage
// collector waits for a guest that never comes back. On Linux, on amd64 and arm64, a timer of the
// kernel does it, whose signal handler is not Go's: it writes a text that was prepared and exits.
// Elsewhere there is none.
package lastresort

import (
	"errors"
	"time"
)

const (
	// ExitCode is what the process exits with.
	ExitCode = 4
	// Grace is how long a process has that was suspended when the time came, and goes on: whoever
	// arms the timer must do so more often.
	Grace = 300 * time.Millisecond
	// MaxMessage is how many bytes are written at most: a pipe takes as many at once.
	MaxMessage = 4096
)

// ErrUnavailable means that the system has no such timer.
var ErrUnavailable = errors.New("no timer that ends the process")
