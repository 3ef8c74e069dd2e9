//go:build !linux

package engine

import "time"

// MeasuresThreads reports whether this system measures the processor time of threads.
const MeasuresThreads = false

func currentThread() int32 { return 0 }

// ThreadTime returns the processor time of a thread of this process, or false if that is unknown.
func ThreadTime(int32) (time.Duration, bool) { return 0, false }
