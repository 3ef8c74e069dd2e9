package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Modules without code: one that throws, by the "producers" section that rustc writes, and one that
// lacks a library.
const (
	throwing = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x0d\x03\x01\x00\x00" +
		"\x00\x1f\x09producers\x01\x08language\x01\x04Rust\x042021"
	lacking = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02\x0f\x01\x03env\x07missing\x00\x00"
)

// TestModulesThatCannotBeUsedSayWhatToBuild: every command describes the fault of a module, once, and says
// how to build a usable one in its language.
func TestModulesThatCannotBeUsedSayWhatToBuild(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	require.NoError(t, os.WriteFile("t.tool.yaml", []byte(manifestHead), 0o600))
	for module, want := range map[string]struct{ problem, fix string }{
		throwing: {"module cannot be used: t.wasm: tag section at byte 14: the section needs exception handling, which is not supported",
			`set panic = "abort" in the profile in Cargo.toml, which is the default of wasm32-wasip1, and link no C++ that throws`},
		lacking: {`module cannot be used: t.wasm imports the function "missing" of "env", which this runtime does not offer; it exports no _start function, so it is not a WASI command`,
			"link it without --allow-undefined, to see which library is missing, and leave out the code for hosts other than WASI; build it as a program for WASI preview 1: " +
				"in Go with GOOS=wasip1 GOARCH=wasm, in Rust with --target wasm32-wasip1, in C with wasi-sdk"},
	} {
		require.NoError(t, os.WriteFile("t.wasm", []byte(module), 0o600))
		code, stdout, _ := start(t.Context(), strings.NewReader(""), "validate", "t.tool.yaml")
		assert.Equal(t, exitUsage, code)
		assert.Equal(t, "t.tool.yaml:4:10: module.path: "+want.problem+"\n  fix: "+want.fix+"\n1 problem in 1 file\n", stdout)

		code, _, stderr := start(t.Context(), strings.NewReader(""), "call", "t", "{}", "--tools", ".")
		assert.Equal(t, exitUsage, code)
		assert.Equal(t, "caisson: error: t: "+want.problem+"\ncaisson: hint: "+want.fix+"\n", stderr)

		code, _, stderr = start(t.Context(), strings.NewReader(""), "compile", ".", "--cache-dir", filepath.Join(t.TempDir(), "cache"))
		assert.Equal(t, exitUsage, code)
		assert.Equal(t, "caisson: error: t: "+want.problem+"\ncaisson: hint: "+want.fix+"\n", stderr)

		code, _, stderr = start(t.Context(), strings.NewReader(""), "inspect", "t.tool.yaml")
		assert.Equal(t, exitUsage, code)
		assert.Equal(t, "caisson: error: "+want.problem+"; "+want.fix+"\n", stderr)
	}
}
