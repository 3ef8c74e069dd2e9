package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
)

// TestStartingManifestsAreValid: for each module that is shipped with its tools, and for those that tests make requests
// with, --manifest writes a manifest that validate accepts, and that says what a person has to write.
func TestStartingManifestsAreValid(t *testing.T) {
	root, err := guests.Compile(t.Context())
	require.NoError(t, err)
	files := []string{filepath.Join(root, "examples/digest/digest.wasm"), filepath.Join(root, "internal/guests/netprobe/netprobe.wasm")}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "wasm-tools"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".wasm" {
			files = append(files, path)
		}
		return err
	}))
	folder, needed := t.TempDir(), 0
	for _, file := range files {
		var out, wrong strings.Builder
		require.Equal(t, exitSuccess, run(t.Context(), []string{"inspect", "--manifest", file}, environment{stdin: strings.NewReader(""), stdout: &out, stderr: &wrong}), "%s: %s", file, &wrong)
		name := filepath.Base(file)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".tool.yaml"), []byte(out.String()), 0o600))
		module, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), module, 0o600))
		imports := strings.Contains(string(module), "caisson:net@1") || strings.Contains(string(module), "caisson:tools@1")
		assert.Equal(t, imports, strings.Contains(wrong.String(), "replace them by what the module really uses"), "%s: %s", file, &wrong)
		if imports {
			needed++
		}
	}
	require.Greater(t, needed, 3)
	var out, wrong strings.Builder
	assert.Equal(t, exitSuccess, run(t.Context(), []string{"validate", folder}, environment{stdin: strings.NewReader(""), stdout: &out, stderr: &wrong}), "%s%s", &out, &wrong)
	assert.Contains(t, out.String(), fmt.Sprintf("%d manifests are valid", len(files)))
}

// TestAPluginWithoutAnEntryHasNoManifest: a plug-in whose only function has a parameter is recognised, and no
// manifest is written that names a function which it lacks.
func TestAPluginWithoutAnEntryHasNoManifest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plugin.wasm")
	require.NoError(t, os.WriteFile(file, []byte("\x00asm\x01\x00\x00\x00"+
		"\x01\x09\x02\x60\x00\x01\x7e\x60\x01\x7f\x00"+ // the types () -> i64 and (i32) -> ()
		"\x02\x20\x01\x0fextism:host/env\x0cinput_length\x00\x00"+
		"\x03\x02\x01\x01\x07\x05\x01\x01f\x00\x01\x0a\x04\x01\x02\x00\x0b"), 0o600)) // exports f, of the second type
	for _, arguments := range [][]string{{"inspect", "--manifest", file}, {"inspect", file}} {
		var out, err strings.Builder
		code := run(t.Context(), arguments, environment{stdin: strings.NewReader(""), stdout: &out, stderr: &err})
		text := out.String() + err.String()
		assert.Equal(t, map[bool]int{true: exitUsage, false: exitSuccess}[len(arguments) == 3], code, text)
		assert.Contains(t, text, "exports no function that a tool could call")
		assert.Contains(t, text, "export one that has no parameters, and returns nothing or a whole number")
		assert.NotContains(t, text, "entry: call")
	}
}
