package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pinThread keeps the calling thread, to which the caller is locked, on one of its processors until the benchmark ends
// it. A thread that moves meets cold caches and predictors, which cost short loops more than metering does.
func pinThread(b *testing.B) (release func()) {
	b.Helper()
	var all, one unix.CPUSet
	require.NoError(b, unix.SchedGetaffinity(0, &all))
	for processor := 0; one.Count() == 0; processor++ {
		if all.IsSet(processor) {
			one.Set(processor)
		}
	}
	require.NoError(b, unix.SchedSetaffinity(0, &one))
	return func() { require.NoError(b, unix.SchedSetaffinity(0, &all)) }
}
