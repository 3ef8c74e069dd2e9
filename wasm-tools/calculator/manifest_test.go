package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/wasm-tools/calculator/expr"
)

func load(t *testing.T) *manifests.Manifest {
	t.Helper()
	m, err := manifests.Load("tool.yaml")
	require.NoError(t, err)
	return m
}

// decode reads JSON with its numbers as they were written.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value), string(text))
	return value
}

// answer is a result object with its data as it was written.
type answer struct {
	Success bool
	Output  string
	Data    json.RawMessage
	Error   string
}

func ask(t *testing.T, arguments []byte) answer {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(bytes.NewReader(arguments), &out))
	var a answer
	require.NoError(t, json.Unmarshal(out.Bytes(), &a))
	return a
}

// TestManifestTests runs the manifest's tests without the sandbox.
func TestManifestTests(t *testing.T) {
	m := load(t)
	require.GreaterOrEqual(t, len(m.Tests), 10)
	for _, test := range m.Tests {
		t.Run(test.Name, func(t *testing.T) {
			require.NoError(t, m.Parameters.Validate(t.Context(), test.Arguments))
			got := ask(t, test.Arguments)
			require.NotNil(t, test.Expect.Success)
			assert.Equal(t, *test.Expect.Success, got.Success)
			assert.Contains(t, got.Error, test.Expect.Error)
			if test.Expect.Output != nil {
				assert.Equal(t, *test.Expect.Output, got.Output)
			}
			if test.Expect.Data != nil {
				assert.Equal(t, decode(t, test.Expect.Data), decode(t, got.Data))
			}
			if got.Success {
				assert.NoError(t, m.Result.Validate(t.Context(), got.Data))
			}
		})
	}
}

func TestDataFitsTheResultSchema(t *testing.T) {
	m := load(t)
	for _, expression := range []string{"0", "-1/3", "1e-400", "1e-300", "1e-50", "170!", "171!", "5000!", "exp(1000)", "2^1023", "2^1024", "10**30/7", "1e308/3"} {
		arguments, err := json.Marshal(map[string]string{"expression": expression})
		require.NoError(t, err)
		got := ask(t, arguments)
		require.True(t, got.Success, expression)
		assert.NoError(t, m.Result.Validate(t.Context(), got.Data), expression)
	}
}

func TestManifestNamesEveryFunction(t *testing.T) {
	words := strings.FieldsFunc(load(t).Description, func(r rune) bool { return strings.ContainsRune(" ,.()[]\n", r) })
	for _, name := range expr.Functions() {
		assert.Contains(t, words, name)
	}
}
