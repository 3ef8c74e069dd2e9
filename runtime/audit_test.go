package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
)

const (
	wantsNetwork = "permissions: {network: [{host: api.example.com}]}"
	wantsSecrets = "permissions: {secrets: [{name: KEY, header: X-Key, host: api.example.com}]}"
	wantsBoth    = "permissions: {network: [{host: api.example.com}], secrets: [{name: KEY, header: X-Key, host: api.example.com}]}"
	wantsTools   = "permissions: {tools: [other]}"
	wantsFiles   = "permissions: {files: [{path: /project}], env: [LANG]}"
)

// importing is a manifest for a command that imports one function, which takes i32s and returns
// what the last byte of the type says, and calls nothing.
func importing(t *testing.T, module, function string, params int, result byte, text string) *manifests.Manifest {
	t.Helper()
	section := func(id byte, content ...byte) []byte { return append([]byte{id, byte(len(content))}, content...) }
	name := func(text string) []byte { return append([]byte{byte(len(text))}, text...) }
	source := []byte("\x00asm\x01\x00\x00\x00")
	types := []byte{2, 0x60, byte(params)}
	for range params {
		types = append(types, 0x7f)
	}
	types = append(types, 1, result, 0x60, 0, 0)
	source = append(source, section(1, types...)...)
	imported := append([]byte{1}, name(module)...)
	imported = append(append(imported, name(function)...), 0, 0)
	source = append(source, section(2, imported...)...)
	source = append(source, section(3, 1, 1)...)    // one function, without parameters and results
	source = append(source, section(5, 1, 0, 1)...) // a page of memory
	exported := append(append([]byte{2}, name("memory")...), 2, 0)
	exported = append(append(exported, name("_start")...), 0, 1)
	source = append(source, section(7, exported...)...)
	source = append(source, section(10, 1, 2, 0, 0x0b)...)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), source, 0o600))
	return manifestIn(t, dir, text)
}

// TestEachImportNeedsItsOwnPermission: one permission opens no other host module. What is refused
// is refused before anything of the module runs. What opens nothing needs none.
func TestEachImportNeedsItsOwnPermission(t *testing.T) {
	const i32, i64 = 0x7f, 0x7e
	for _, c := range []struct {
		module, function string
		params           int
		result           byte
		text, missing    string // what the manifest does not ask for, or ""
	}{
		{abi.Network, "request", 4, i64, wantsNetwork, ""},
		{abi.Network, "request", 4, i64, wantsBoth, ""},
		{abi.Network, "request", 4, i64, wantsSecrets, "permissions.network;"},
		{abi.Network, "request", 4, i64, wantsFiles, "permissions.network;"},
		{abi.Secrets, "exists", 2, i64, wantsSecrets, ""},
		{abi.Secrets, "exists", 2, i64, wantsNetwork, "permissions.secrets;"},
		{abi.Secrets, "exists", 2, i64, "", "permissions.secrets;"},
		{abi.IO, "read", 2, i32, wantsNetwork, ""},
		{abi.IO, "read", 2, i32, wantsSecrets, ""},
		{abi.Tools, "call", 2, i64, wantsTools, ""},
		{abi.Tools, "call", 2, i64, wantsBoth, "permissions.tools;"},
		{abi.Tools, "call", 2, i64, "", "permissions.tools;"},
		{abi.Network, "request", 4, i64, wantsTools, "permissions.network;"},
		{abi.IO, "read", 2, i32, wantsTools, ""},
		{abi.IO, "read", 2, i32, wantsFiles, ""},
		{abi.IO, "read", 2, i32, "", ""},
		{abi.Stream, "emit", 2, i64, "", ""},
		{abi.Context, "get", 2, i64, "", ""},
	} {
		m := importing(t, c.module, c.function, c.params, c.result, c.text)
		_, err := InspectModule(m)
		if c.missing == "" {
			require.NoError(t, err, "%+v", c)
			continue
		}
		require.ErrorIs(t, err, ErrModule, "%+v", c)
		assert.ErrorContains(t, err, "does not ask for "+c.missing)
		_, err = invoke(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}), `{}`)
		require.ErrorIs(t, err, ErrModule, "%+v", c)
	}
}

// TestImportsHaveTheirType: a function of another type is not the one that is offered.
func TestImportsHaveTheirType(t *testing.T) {
	const i32, i64 = 0x7f, 0x7e
	for name, m := range map[string]*manifests.Manifest{
		"parameters":  importing(t, abi.Network, "request", 3, i64, wantsBoth),
		"result":      importing(t, abi.Network, "request", 4, i32, wantsBoth),
		"of WASI":     importing(t, "wasi_snapshot_preview1", "fd_close", 2, i32, ""),
		"no function": importing(t, abi.Network, "listen", 4, i64, wantsBoth),
		"no module":   importing(t, "caisson:shell@1", "run", 4, i64, wantsBoth),
	} {
		_, err := InspectModule(m)
		require.ErrorIs(t, err, ErrModule, name)
	}
}

// TestPermissionsThatAModuleCannotUse: what a manifest asks for in vain is told.
func TestPermissionsThatAModuleCannotUse(t *testing.T) {
	const i32, i64 = 0x7f, 0x7e
	for _, c := range []struct {
		m      *manifests.Manifest
		unused []string
	}{
		{importing(t, abi.IO, "read", 2, i32, wantsBoth), []string{"permissions.network", "permissions.secrets"}},
		{importing(t, abi.Network, "request", 4, i64, wantsBoth), []string{}},
		{importing(t, abi.Secrets, "exists", 2, i64, wantsSecrets), []string{"permissions.secrets"}},
		{importing(t, abi.Tools, "call", 2, i64, wantsTools), []string{}},
		{importing(t, abi.IO, "read", 2, i32, wantsTools), []string{"permissions.tools"}},
		{importing(t, "wasi_snapshot_preview1", "fd_close", 1, i32, wantsFiles), []string{"permissions.env", "permissions.files"}},
		{importing(t, "wasi_snapshot_preview1", "environ_get", 2, i32, wantsFiles), []string{"permissions.files"}},
	} {
		info, err := InspectModule(c.m)
		require.NoError(t, err)
		assert.Equal(t, c.unused, info.Unused, "%v", info.Imports)
	}
}
