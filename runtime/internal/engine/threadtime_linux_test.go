package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// measuresThreads says that threadTime is the processor time of the calling thread.
const measuresThreads = true

// threadTime returns how long the calling thread has used a processor.
func threadTime() time.Duration {
	var spent unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent); err != nil {
		panic(err)
	}
	return time.Duration(spent.Nano())
}
