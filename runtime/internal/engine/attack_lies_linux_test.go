//go:build !race

package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/caisson-run/caisson/internal/testsize"
)

// TestAttackLiesControl: modules of some 15 bytes end a process that has wazero compile
// them, beyond what recover can help. The process may
// have 2 GiB of memory, so that the machine keeps some.
func TestAttackLiesControl(t *testing.T) {
	checked := map[string]bool{"types": true, "memories": true, "groups of locals": true} // by wazero itself
	eachTrial(t, testsize.Sample(lies(), 6), func(m module) trial { return trial{name: m.name, patience: time.Minute} }, func(m module, t *testing.T) report {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 2 << 30, Max: 2 << 30}))
		return m.plainly(t)
	}, func(m module, t *testing.T, e ending) {
		t.Logf("%d bytes: %s%s", len(m.source), e.Problem, strings.SplitN(e.output, "\n\n", 2)[0])
		if checked[m.name] {
			assert.NotEmpty(t, e.Problem)
			return
		}
		assert.False(t, e.reported, "the process survived")
		assert.Contains(t, e.output, "out of memory")
	})
}

// resident returns a line of this process's memory in bytes: VmRSS is its current resident memory, VmHWM the maximum
// since resetPeak.
func resident(t *testing.T, line string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(status), line+":")
	require.True(t, found)
	var kilobytes int64
	_, err = fmt.Sscan(after, &kilobytes)
	require.NoError(t, err)
	return kilobytes << 10
}

func resetPeak(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
}
