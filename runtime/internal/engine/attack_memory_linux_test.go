//go:build !race

package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// resident returns a line of this process's memory in bytes: VmRSS is what it has, VmHWM
// the most that it has had since resetPeak.
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
