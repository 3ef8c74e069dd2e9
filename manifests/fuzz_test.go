package manifests_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func FuzzParse(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*/*.*[nl]")
	require.NoError(f, err)
	for _, input := range inputs {
		source, err := os.ReadFile(input)
		require.NoError(f, err)
		f.Add(source, filepath.Ext(input) == ".json")
	}
	for _, seed := range []string{"", "\x00", "{}", "[]", "a", "&a *a", "<<: {}", "%YAML 1.1\n---\n", "? ? ? ?", "a: [b\n", "!!map {}", "\ufeffschema: caisson/v1", "{\"a\":\n{\"a\":1,\"a\":2}}", "- - - -", "a: |2\n  b", "'\\\n", "\u2028: b"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, source []byte, asJSON bool) {
		file := "tool.yaml"
		if asJSON {
			file = "tool.json"
		}
		m, err := manifests.Parse(file, source)
		if err != nil {
			require.Nil(t, m)
			checkProblems(t, file, err)
			return
		}
		checkManifest(t, m)
	})
}

func checkProblems(t *testing.T, file string, err error) {
	var invalid *manifests.Error
	require.True(t, errors.As(err, &invalid))
	require.NotEmpty(t, invalid.Problems)
	for i, p := range invalid.Problems {
		assert.Equal(t, file, p.File)
		assert.GreaterOrEqual(t, p.Line, 1)
		assert.GreaterOrEqual(t, p.Column, 1)
		assert.NotEmpty(t, p.Kind)
		assert.NotEmpty(t, p.Message)
		assert.NotEmpty(t, p.Fix)
		if i > 0 {
			assert.LessOrEqual(t, invalid.Problems[i-1].Line, p.Line)
		}
	}
}

// checkType makes sure that every call of the type can be made into arguments that fit.
func checkType(t *testing.T, m *manifests.Manifest) {
	assert.Contains(t, []string{tool.FunctionCall, tool.CustomCall, tool.LocalShellCall}, m.Type)
	assert.Equal(t, m.Type == tool.CustomCall, m.TextParameter() != "")
	if m.Execution == manifests.ExecutionClient {
		assert.Empty(t, m.Context)
		assert.Empty(t, m.Tests)
	}
	if m.Format != nil {
		assert.Equal(t, tool.CustomCall, m.Type)
		var format struct{ Type, Syntax, Definition string }
		require.NoError(t, json.Unmarshal(m.Format, &format))
		assert.Equal(t, format.Type == "grammar", format.Syntax != "")
		assert.Equal(t, format.Type == "grammar", format.Definition != "")
	}
	if m.Type == tool.LocalShellCall {
		assert.Equal(t, manifests.ExecutionClient, m.Execution)
		assert.NoError(t, m.Parameters.Validate(t.Context(), []byte(`{"command":["true"],"env":{}}`)))
	}
}

func checkManifest(t *testing.T, m *manifests.Manifest) {
	assert.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, m.Name)
	assert.NotEmpty(t, m.Description)
	require.NotNil(t, m.Parameters)
	var shown struct {
		Type       string
		Properties map[string]json.RawMessage
		Required   []string
	}
	require.NoError(t, json.Unmarshal(m.ModelParameters, &shown))
	assert.Equal(t, "object", shown.Type)
	for _, name := range m.Context {
		assert.NotContains(t, shown.Properties, name)
		assert.NotContains(t, shown.Required, name)
	}
	assert.Equal(t, m.Execution != manifests.ExecutionClient, m.Module.Path != "")
	checkType(t, m)
	assert.False(t, m.Behavior.Cache > 0 && !m.Behavior.ReadOnly)
	assert.True(t, m.Behavior.Cache >= 0 || m.Behavior.Cache == manifests.CacheOff)
	for _, mount := range m.Permissions.Files {
		assert.True(t, mount.Path.Err() == nil)
		assert.False(t, m.Behavior.ReadOnly && mount.Access == manifests.AccessReadWrite)
	}
	for _, p := range m.Permissions.Network {
		assert.NotEmpty(t, p.Host)
		assert.NotEmpty(t, p.Methods)
		assert.NotEmpty(t, p.Schemes)
		assert.NotEmpty(t, p.Paths)
	}
	for _, test := range m.Tests {
		assert.True(t, json.Valid(test.Arguments))
	}
	assert.GreaterOrEqual(t, m.Line("name"), 1)
}
