package extism

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
)

// FuzzLoad holds Load to its promises on any manifest in a folder with three modules: it does not panic, its problems
// have places, and the manifests that it makes have each module in its place.
func FuzzLoad(f *testing.F) {
	folder := f.TempDir()
	for _, name := range []string{"a.wasm", "b.wasm", "c.wasm"} {
		require.NoError(f, os.WriteFile(filepath.Join(folder, name), []byte(exporting("run", name[:1])), 0o600))
	}
	for _, modules := range []string{
		``, `{}`, `1`, `{"path": "a.wasm"}`, `{"path": "a.wasm"}, {"path": "b.wasm"}`, `{"path": "a.wasm", "name": "a"}, {"path": "./b.wasm", "name": "b.c"}, {"path": "c.wasm"}`,
		`{"path": "a.wasm", "name": "a"}, {"path": "b.wasm", "name": "a"}`, `{"path": "a.wasm", "name": "main"}, {"path": "b.wasm", "name": "a b"}`,
		`{"path": "a.wasm", "hash": "00"}`, `{"path": "../a.wasm"}`, `{"data": "AGFzbQEAAAA="}`, `{"path": "a.wasm", "name": 1}`,
	} {
		f.Add([]byte(`{"wasm": [` + modules + `]}`))
		f.Add([]byte(`{"wasm": [` + modules + `], "allowed_hosts": ["*.example.com"], "allowed_paths": {"ro:/srv": "/data"}, "memory": {"max_pages": 5}, "timeout_ms": 3, "config": {"a": "b"}}`))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		file := filepath.Join(folder, "plugin.json")
		require.NoError(t, os.WriteFile(file, source, 0o600))
		done, err := Load(file)
		if err != nil {
			var invalid *manifests.Error
			if !assert.ErrorAs(t, err, &invalid) {
				return
			}
			require.NotEmpty(t, invalid.Problems)
			checkPlaces(t, file, invalid.Problems)
			return
		}
		require.NotEmpty(t, done.Manifests)
		checkPlaces(t, file, done.Notes)
		for _, m := range done.Manifests {
			assert.Equal(t, modules.ABIExtism, m.Module.ABI)
			assert.Contains(t, []string{"a.wasm", "b.wasm", "c.wasm"}, m.Module.Path)
			for name := range m.Module.Libraries {
				assert.True(t, modules.LibraryName.MatchString(name))
				assert.GreaterOrEqual(t, m.Line(keypath.Key("module.libraries", name)), 1)
			}
		}
	})
}

func checkPlaces(t *testing.T, file string, problems []manifests.Problem) {
	t.Helper()
	for _, p := range problems {
		assert.Equal(t, file, p.File)
		assert.GreaterOrEqual(t, p.Line, 1)
		assert.GreaterOrEqual(t, p.Column, 1)
		assert.NotEmpty(t, p.Message)
		assert.NotEmpty(t, p.Fix, p.Message)
	}
}
