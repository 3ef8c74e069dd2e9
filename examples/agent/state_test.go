package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzState: a file may hold anything. What is read is written again as the same.
func FuzzState(f *testing.F) {
	kept, err := os.ReadFile(filepath.Join("testdata", "state.json"))
	require.NoError(f, err)
	s, err := parseState(kept)
	require.NoError(f, err)
	require.Len(f, s.Outputs, 1)
	f.Add(kept)
	f.Add([]byte(`{"schema":"caisson-agent/v1","conversation":{"messages":[null]},"batch":{"version":"caisson-state/v1"}}`))
	f.Add([]byte(`{"schema":"caisson-agent/v1"} {}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		s, err := parseState(document)
		if err != nil {
			return
		}
		require.NotEmpty(t, s.Batch.Pending())
		written, err := json.Marshal(s)
		require.NoError(t, err)
		again, err := parseState(written)
		require.NoError(t, err)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}

// TestAFileIsReplacedWhole: what cannot be written leaves what was there, and nothing beside it.
func TestAFileIsReplacedWhole(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "state.json")
	require.NoError(t, replace(file, []byte("one")))
	require.NoError(t, replace(file, []byte("two")))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "two", string(content))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "folder"), 0o700))
	require.Error(t, replace(filepath.Join(folder, "folder"), []byte("three")))
	require.Error(t, replace(filepath.Join(folder, "none", "state.json"), []byte("three")))
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, entries, 2)
}
