package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackForgedIndex: if the index of manifests gives another name to the tool that is called, all
// manifests are parsed, and the call fails for a tool that does not exist. The control is the list, which
// calls nothing and shows that the forgery is in effect.
func TestAttackForgedIndex(t *testing.T) {
	root := noerr.Get(guests.Root())(t)
	// A small module, since it is compiled three times.
	module := noerr.Get(os.ReadFile(filepath.Join(root, "internal", "guests", "seeded", "c", "seeded.wasm")))(t)
	tools, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.WriteFile(filepath.Join(tools, "tool.wasm"), module, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "tool.yaml"),
		[]byte("schema: caisson/v1\nname: calculator\ndescription: Draw a number.\nmodule: {path: tool.wasm, args: [entropy, late]}\n"), 0o600))
	flags := []string{"--tools", tools, "--cache-dir", cache}
	call := func(name string) (int, string, string) {
		return start(t.Context(), nil, append([]string{"call", name, "--state-dir", ""}, flags...)...)
	}
	code, stdout, stderr := call("calculator")
	require.Zero(t, code, stderr)
	require.Regexp(t, `^\d+\n$`, stdout)

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
		require.Regexp(t, `^\d+\n$`, stdout)
	}
}

// forge replaces a text in an index's entry for a manifest by another one of the same length.
func forge(t *testing.T, index, manifest, old, replacement string) {
	t.Helper()
	require.Len(t, replacement, len(old))
	source := noerr.Get(os.ReadFile(manifest))(t)
	text := noerr.Get(os.ReadFile(index))(t)
	key := fmt.Appendf(nil, "\n%x ", sha256.Sum256(append([]byte("yaml\n"), source...)))
	at := bytes.Index(text, key)
	require.GreaterOrEqual(t, at, 0, "the index has the manifest")
	record, _, _ := bytes.Cut(text[at+len(key):], []byte("\n"))
	copy(record, bytes.Replace(record, []byte(old), []byte(replacement), 1))
	head, entries, _ := bytes.Cut(text, []byte("\n"))
	copy(head[bytes.LastIndexByte(head, ' ')+1:], fmt.Appendf(nil, "%x", sha256.Sum256(entries)))
	require.NoError(t, os.WriteFile(index, text, 0o600))
}
