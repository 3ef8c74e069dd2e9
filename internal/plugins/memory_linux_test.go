package plugins

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttacksTakeNoMoreMemoryThanAllowed: while a plug-in asks for as much memory as it can get, in its own
// memory or the host's, the process grows by no more than the limit of the call and some work.
func TestAttacksTakeNoMoreMemoryThanAllowed(t *testing.T) {
	const limit, work = 64 << 20, 64 << 20
	serve(t)
	s := hostile(t)
	s.measured = true
	for _, export := range []string{
		"allocate_1_gib", "memory_until_refused", "both_memories", "million_blocks", "variables_without_end", "many_variables",
		"grow_a_variable_by_reading", "log_a_giant", "log_many",
	} {
		t.Run(export, func(t *testing.T) {
			call := caisson(t, s, export)
			debug.FreeOSMemory()
			before := resident(t, "VmRSS")
			require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // the peak begins anew
			for range 3 {
				_, _ = call("the input") // how it ends is TestAttacksOfPluginsAreContained's
			}
			assert.Less(t, resident(t, "VmHWM")-before, int64(limit+work))
		})
	}
}

// TestAttacksTakeMemoryControl: on go-sdk, the process grows by what the plug-in asks for.
func TestAttacksTakeMemoryControl(t *testing.T) {
	call := theirs{}.load(t, hostile(t), "both_memories")
	debug.FreeOSMemory()
	before := resident(t, "VmRSS")
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
	require.Equal(t, "80 MiB", call("").Output)
	assert.Greater(t, resident(t, "VmHWM")-before, int64(80<<20))
}

// resident returns a number of bytes from /proc/self/status.
func resident(t testing.TB, name string) (size int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, after, found := bytes.Cut(status, []byte(name+":"))
	require.True(t, found)
	_, err = fmt.Sscanf(string(after), "%d kB", &size)
	require.NoError(t, err)
	return size << 10
}
