//go:build !linux

package engine

import "time"

// measuresThreads says that threadTime is the processor time of the calling thread. Here it is the
// time by the clock.
const measuresThreads = false

var clockStart = time.Now()

func threadTime() time.Duration { return time.Since(clockStart) }
