package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
