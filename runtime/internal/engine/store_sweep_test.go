package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aged makes a directory with something in it that was last written to so long ago.
func aged(t *testing.T, directory string, age time.Duration) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(directory, "output"), 0o700))
	then := time.Now().Add(-age)
	require.NoError(t, os.Chtimes(directory, then, then))
}

// TestLeftoversOfKilledProcessesGo: a process that is killed leaves its directories, which
// a later one removes once nobody can be using them.
func TestLeftoversOfKilledProcessesGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache [1")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for _, kind := range []string{"compiling-", "reading-", "removed-"} {
		aged(t, filepath.Join(dir, kind+"1"), 2*abandoned)
		aged(t, filepath.Join(dir, kind+"2"), abandoned/2)
	}
	keeping(t, dir, Options{})
	for _, kind := range []string{"compiling-", "reading-", "removed-"} {
		assert.NoDirExists(t, filepath.Join(dir, kind+"1"))
		assert.DirExists(t, filepath.Join(dir, kind+"2"))
	}
}

// TestScratchOfKilledProcessesGoes: in the folder for temporary files, which others use as
// well, only what is old and surely ours goes.
func TestScratchOfKilledProcessesGoes(t *testing.T) {
	folder := t.TempDir()
	old := func(name string) string {
		path := filepath.Join(folder, name)
		aged(t, path, 2*abandoned)
		return path
	}
	ours := old("caisson-compiled-123")
	kept := []string{old("caisson-compiled-"), old("caisson-compiled-notes"), old("my-caisson-compiled-1"), old("compiling-1")}
	aged(t, filepath.Join(folder, "caisson-compiled-4"), abandoned/2)
	kept = append(kept, filepath.Join(folder, "caisson-compiled-4"))

	require.NoError(t, sweepScratch(folder, time.Now()))
	assert.NoDirExists(t, ours)
	for _, path := range kept {
		assert.DirExists(t, path)
	}
}

// TestScratchIsSwept: an engine without a cache directory sweeps, and names its own so
// that a later one finds it.
func TestScratchIsSwept(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	t.Setenv("TMP", folder)
	left := filepath.Join(folder, "caisson-compiled-1")
	aged(t, left, 2*abandoned)
	e := newEngine(t, Options{Compiler: child(t)}, nil)
	assert.NoDirExists(t, left)
	assert.Equal(t, folder, filepath.Dir(e.store.directory))
	assert.Regexp(t, scratchName, filepath.Base(e.store.directory))
}
