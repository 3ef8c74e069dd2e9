package manifests

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/tool"
)

// TestJSONSchemaHasTheKeysOfTheReader keeps the published schema from drifting away
// from what Parse accepts.
func TestJSONSchemaHasTheKeysOfTheReader(t *testing.T) {
	source, err := os.ReadFile("testdata/valid/fetch_page.tool.yaml")
	require.NoError(t, err)
	read := map[string][]string{}
	index := regexp.MustCompile(`\[\d+\]`)
	r := &reader{file: "tool.yaml", observe: func(path string, keys []string) {
		read[index.ReplaceAllString(path, "[]")] = slices.Sorted(slices.Values(keys))
	}}
	r.manifest(r.document(source))
	require.Empty(t, r.problems)

	var published map[string]any
	require.NoError(t, json.Unmarshal(JSONSchema(), &published))
	written := map[string][]string{}
	collectKeys(published, "", written)
	assert.Equal(t, written, read)
}

// collectKeys notes the keys of every object schema with fixed keys, by path.
func collectKeys(s map[string]any, path string, to map[string][]string) {
	if items, ok := s["items"].(map[string]any); ok {
		collectKeys(items, path+"[]", to)
	}
	properties, ok := s["properties"].(map[string]any)
	if !ok {
		return
	}
	to[path] = slices.Sorted(maps.Keys(properties))
	for key, inner := range properties {
		collectKeys(inner.(map[string]any), strings.TrimPrefix(path+"."+key, "."), to)
	}
}

func TestJSONSchemaAcceptsValidManifests(t *testing.T) {
	published, err := schema.Compile(JSONSchema())
	require.NoError(t, err)
	inputs, err := filepath.Glob("testdata/valid/*")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, input := range inputs {
		source, err := os.ReadFile(input)
		require.NoError(t, err)
		r := &reader{file: input}
		root := r.document(source)
		require.NotNil(t, root)
		assert.NoError(t, published.Validate(root.json()), input)
	}
	assert.Error(t, published.Validate([]byte(`{"schema":"caisson/v1","name":"a","description":"b","nmae":1}`)))
}

func TestJSONSchemaListsEveryKind(t *testing.T) {
	var names []string
	for _, kind := range tool.Kinds() {
		names = append(names, `"`+string(kind)+`"`)
	}
	flat := strings.Join(strings.Fields(string(JSONSchema())), " ")
	assert.Contains(t, flat, strings.Join(names, ", "))
}

func TestJSONSchemaIsACopy(t *testing.T) {
	JSONSchema()[0] = 'x'
	assert.Equal(t, byte('{'), JSONSchema()[0])
}
