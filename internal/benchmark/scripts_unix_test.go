//go:build unix

package benchmark

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNativeStart: neither a program that only looks for the interpreter nor a missing one is measured.
func TestNativeStart(t *testing.T) {
	dir := t.TempDir()
	shim, real := filepath.Join(dir, "shim"), filepath.Join(dir, "real")
	require.NoError(t, os.WriteFile(real, []byte("#!/bin/sh\necho 2\n"), 0o700))
	require.NoError(t, os.WriteFile(shim, []byte("#!/bin/sh\nif [ \"$2\" = itself ]; then printf %s "+real+"; else echo shim; fi\n"), 0o700))
	way, err := nativeStart(t.Context(), scriptLanguage{program: shim, itself: "itself", flags: []string{"-c"}, code: "code"})
	require.NoError(t, err)
	_, err = way.measure(t.Context())
	require.NoError(t, err)

	way, err = nativeStart(t.Context(), scriptLanguage{program: shim, itself: "no path", flags: []string{"-c"}, code: "code"})
	require.ErrorContains(t, err, "does not say where it is", "control: %v", way)
	_, err = nativeStart(t.Context(), scriptLanguage{program: filepath.Join(dir, "none"), flags: []string{"-c"}})
	require.ErrorIs(t, err, os.ErrNotExist)
}
