package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
)

// TestAttackForgedIndex: if the index of manifests gives another name to the tool that is called, all
// manifests are parsed, and the call fails for a tool that does not exist. The control is the list, which
// calls nothing and shows that the forgery is in effect.
func TestAttackForgedIndex(t *testing.T) {
	root, err := guests.Compile(t.Context(), "wasm-tools/calculator")
	require.NoError(t, err)
	tools, cache := filepath.Join(root, "wasm-tools", "calculator"), filepath.Join(t.TempDir(), "cache")
	flags := []string{"--tools", tools, "--cache-dir", cache}
	call := func(name string) (int, string, string) {
		return start(t.Context(), nil, append([]string{"call", name, "expression=6*7", "--state-dir", ""}, flags...)...)
	}
	code, stdout, stderr := call("calculator")
	require.Zero(t, code, stderr)
	require.Equal(t, "42\n", stdout)

	forge(t, filepath.Join(cache, "manifests"), filepath.Join(tools, "tool.yaml"), "calculator", "calcuIator")
	code, stdout, stderr = start(t.Context(), nil, append([]string{"list"}, flags...)...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "calcuIator", "the control")

	code, stdout, stderr = call("calcuIator")
	assert.Equal(t, exitUsage, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, `there is no tool "calcuIator"; did you mean calculator?`)

	batch := filepath.Join(t.TempDir(), "calls.json")
	require.NoError(t, os.WriteFile(batch, []byte(`[{"id":"1","function":{"name":"calcuIator","arguments":"{}"}}]`), 0o600))
	_, stdout, _ = start(t.Context(), nil, append([]string{"batch", batch, "--state-dir", ""}, flags...)...)
	assert.Contains(t, stdout, "did you mean calculator?")

	// Without the forgery, or without the cache, everything is as before.
	for _, folder := range []string{"", filepath.Join(t.TempDir(), "another")} {
		flags[3] = folder
		code, stdout, stderr = call("calculator")
		require.Zero(t, code, stderr)
		require.Equal(t, "42\n", stdout)
	}
}

// forge replaces a text in what an index says of a manifest by another one of the same length.
func forge(t *testing.T, index, manifest, old, replacement string) {
	t.Helper()
	require.Len(t, replacement, len(old))
	source, err := os.ReadFile(manifest)
	require.NoError(t, err)
	text, err := os.ReadFile(index)
	require.NoError(t, err)
	key := sha256.Sum256(append([]byte("yaml\n"), source...))
	at := bytes.Index(text, key[:])
	require.GreaterOrEqual(t, at, 0, "the index has the manifest")
	length, size := binary.Uvarint(text[at+len(key):])
	record := text[at+len(key)+size:][:length]
	copy(record, bytes.Replace(record, []byte(old), []byte(replacement), 1))
	entries := text[bytes.IndexByte(text, '\n')+1:][sha256.Size:]
	sum := sha256.Sum256(entries)
	copy(text[len(text)-len(entries)-len(sum):], sum[:])
	require.NoError(t, os.WriteFile(index, text, 0o600))
}
