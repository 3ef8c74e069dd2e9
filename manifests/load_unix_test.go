//go:build unix

package manifests_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// TestLoadDoesNotWaitForAPipe would hang if a pipe were opened.
func TestLoadDoesNotWaitForAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "tool.yaml")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	done := make(chan error, 1)
	go func() {
		_, err := manifests.Load(pipe)
		done <- err
	}()
	select {
	case err := <-done:
		assert.ErrorIs(t, err, manifests.ErrFile)
		assert.ErrorContains(t, err, "not a regular file")
	case <-time.After(10 * time.Second):
		t.Fatal("Load waits for a writer of the pipe")
	}
}
