package engine

import (
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var clockStart = time.Now()

// threadTime returns the processor time of the calling thread, or the time by the clock where that is not known. The
// caller must be locked to its thread.
func threadTime() time.Duration {
	if used, known := ThreadTime(currentThread()); known {
		return used
	}
	return time.Since(clockStart)
}

// TestThreadTime: a thread that computes uses a processor, and one that waits does not.
func TestThreadTime(t *testing.T) {
	if !MeasuresThreads {
		assert.Zero(t, currentThread())
		return
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	thread := currentThread()
	used := func() time.Duration {
		spent, known := ThreadTime(thread)
		assert.True(t, known)
		return spent
	}
	before, began := used(), time.Now()
	time.Sleep(200 * time.Millisecond)
	assert.Less(t, used()-before, time.Since(began)/2)
	before = used()
	for used()-before < 20*time.Millisecond {
		continue
	}
	_, known := ThreadTime(1) // of another process
	assert.False(t, known)
}
