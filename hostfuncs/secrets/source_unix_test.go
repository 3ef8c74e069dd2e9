//go:build unix

package secrets_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
)

func TestModesOfSecretFiles(t *testing.T) {
	const value = "0123456789abcdef"
	for _, mode := range []os.FileMode{0o620, 0o602, 0o666, 0o777} {
		_, err := from(manifests.SecretSource{File: writeFile(t, value, mode)}, inHeader("X"), nil)
		require.ErrorIs(t, err, secrets.ErrSource)
		assert.ErrorContains(t, err, "can be changed by others (mode 0")
		assert.ErrorContains(t, err, "chmod go-w")
	}
	for _, mode := range []os.FileMode{0o640, 0o644, 0o604} {
		set := must(from(manifests.SecretSource{File: writeFile(t, value, mode)}, inHeader("X"), nil))
		assert.Regexp(t, `^granted; its file can be read by others \(mode 06[04][04]\)$`, set.Decisions()[0].Reason)
	}
}

// TestPipesDoNotBlock: opening one to read waits for a writer, without end.
func TestPipesDoNotBlock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	_, err := from(manifests.SecretSource{File: name}, inHeader("X"), nil)
	require.ErrorIs(t, err, secrets.ErrSource)
	assert.ErrorContains(t, err, "is not a regular file")
}
