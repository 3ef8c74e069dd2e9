package manual

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
)

var update = flag.Bool("update", false, "write the tables of docs/manifest.md, and docs/schema")

const (
	docs = "../../docs"
	page = docs + "/manifest.md"
)

// TestPageIsUpToDate: the tables are those of the schema, and so are the schemas that editors read.
func TestPageIsUpToDate(t *testing.T) {
	written := read(t, page)
	filled, err := Fill(written, string(manifests.JSONSchema()))
	require.NoError(t, err)
	for file, want := range map[string]string{
		page: filled,
		filepath.Join(docs, "schema", "manifest.schema.json"): string(manifests.JSONSchema()),
		filepath.Join(docs, "schema", "policy.schema.json"):   string(manifests.PolicyJSONSchema()),
	} {
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		}
		assert.True(t, want == read(t, file), "%s is not what the schema says; make manual writes it", file)
	}
	_, err = Fill("<!-- keys of moduls -->\n<!-- end -->", string(manifests.JSONSchema()))
	require.ErrorIs(t, err, errPage)
}

// TestExamplesAreManifests: each example in YAML is read, and fits the schema that editors have, as it
// is or together with the keys that every manifest has. Together they have every key.
func TestExamplesAreManifests(t *testing.T) {
	published, err := schema.Compile(manifests.JSONSchema())
	require.NoError(t, err)
	examples := regexp.MustCompile("(?ms)^```yaml.*?\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1)
	require.Greater(t, len(examples), 15)
	shown := map[string]bool{}
	for _, example := range examples {
		source := example[1]
		var given map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(source), &given), source)
		for _, key := range [...]string{"schema: caisson/v1", "name: example", "description: An example.", "module: {path: example.wasm}"} {
			name, _, _ := strings.Cut(key, ":")
			if given[name] == nil && !(name == "module" && given["execution"] == "client") {
				source += key + "\n"
			}
		}
		_, err := manifests.Parse("tool.yaml", []byte(source))
		require.NoError(t, err, source)
		require.NoError(t, published.Validate(t.Context(), asJSON(t, source)), source)
		addKeys(shown, "", given)
	}
	for _, key := range keys(t) {
		assert.True(t, shown[key], "no example has the key %s", key)
	}
}

// TestShippedFilesFitTheSchemas: no editor finds fault with the manifests and policies of this
// repository.
func TestShippedFilesFitTheSchemas(t *testing.T) {
	fitted := 0
	for pattern, source := range map[string][]byte{"tool.yaml": manifests.JSONSchema(), "caisson.yaml": manifests.PolicyJSONSchema()} {
		published, err := schema.Compile(source)
		require.NoError(t, err)
		for _, folder := range [...]string{"../../wasm-tools/*/*", "../../examples/*/*", "../../examples/*/*/*/*"} {
			files, err := filepath.Glob(folder + pattern)
			require.NoError(t, err)
			for _, file := range files {
				assert.NoError(t, published.Validate(t.Context(), asJSON(t, read(t, file))), file)
				fitted++
			}
		}
	}
	assert.GreaterOrEqual(t, fitted, 20)
}

// asJSON returns a document in YAML as JSON.
func asJSON(t *testing.T, source string) []byte {
	t.Helper()
	var document map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(source), &document), source)
	text, err := json.Marshal(document)
	require.NoError(t, err, source)
	return text
}

// addKeys adds the paths of the keys in a value. What authors name is *.
func addKeys(to map[string]bool, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if path == "parameter_aliases." {
				key = "*"
			}
			to[path+key] = true
			addKeys(to, path+key+".", inner)
		}
	case []any:
		for _, element := range value {
			addKeys(to, path, element)
		}
	}
}

// keys returns the paths of all keys in the schema, which has a description for each.
func keys(t *testing.T) []string {
	var root map[string]any
	require.NoError(t, json.Unmarshal(manifests.JSONSchema(), &root))
	found := map[string]bool{}
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		if items, ok := s["items"].(map[string]any); ok {
			walk(path, items)
		}
		if chosen, ok := s["additionalProperties"].(map[string]any); ok {
			walk(path+"*.", chosen)
		}
		properties, _ := s["properties"].(map[string]any)
		for key, inner := range properties {
			found[path+key] = true
			assert.NotEmpty(t, inner.(map[string]any)["description"], "%s%s has no description", path, key)
			walk(path+key+".", inner.(map[string]any))
		}
	}
	walk("", root)
	return slices.Sorted(maps.Keys(found))
}

// TestDefaultsAreThoseOfTheReader: writing a default changes nothing, and the bounds of a size or a
// duration are those in its description.
func TestDefaultsAreThoseOfTheReader(t *testing.T) {
	var root struct{ Properties map[string]any }
	require.NoError(t, json.Unmarshal(manifests.JSONSchema(), &root))
	parse := func(members map[string]any) (*manifests.Manifest, error) {
		document := map[string]any{"schema": "caisson/v1", "name": "a", "description": "b", "module": map[string]any{"path": "a.wasm"}}
		maps.Copy(document, members)
		source, err := json.Marshal(document)
		require.NoError(t, err)
		return manifests.Parse("tool.json", source)
	}
	compared, bounded := 0, 0
	compare := func(default_ any, plain, written map[string]any) {
		without, err := parse(plain)
		require.NoError(t, err)
		with, err := parse(written)
		require.NoError(t, err)
		assert.Equal(t, shownIn(t, without), shownIn(t, with), "%v: %v", written, default_)
		compared++
	}
	for key, s := range root.Properties {
		s := s.(map[string]any)
		if value, ok := s["default"]; ok {
			compare(value, nil, map[string]any{key: value})
		}
		for inner, s := range object(s["properties"]) {
			s := s.(map[string]any)
			about, _ := s["description"].(string)
			if key == "limits" || inner == "cache" {
				_, err := parse(map[string]any{"behavior": map[string]any{"read_only": true}, key: map[string]any{"read_only": true, inner: "0"}})
				if fix := regexp.MustCompile(`a (?:size|duration) from (\S+?)(?:0m0s|0s)? to (\S+?)(?:0m0s)?,`).FindStringSubmatch(errorText(err)); fix != nil {
					assert.Contains(t, about, fix[1]+" to "+fix[2], inner)
					bounded++
				}
				continue
			}
			if value, ok := s["default"]; ok {
				plain := map[string]any{}
				if key == "module" {
					plain["path"] = "a.wasm"
				}
				written := maps.Clone(plain)
				written[inner] = value
				compare(value, map[string]any{key: plain}, map[string]any{key: written})
			}
		}
	}
	assert.Greater(t, compared, 15)
	assert.Equal(t, 7, bounded)
}

func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// shownIn returns what a manifest says, as text.
func shownIn(t *testing.T, m *manifests.Manifest) string {
	m.File, m.Parameters, m.Result = "", nil, nil
	text, err := json.Marshal(m)
	require.NoError(t, err)
	return strings.NewReplacer("[]", "null", "{}", "null").Replace(string(text))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
