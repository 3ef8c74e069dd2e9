package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

// TestSchemasUseEveryText: each path in the texts about a schema is that of a value that the reader reads.
func TestSchemasUseEveryText(t *testing.T) {
	for _, s := range []*schemaSource{manifestSchema(), policySchema()} {
		s.text()
		assert.Empty(t, s.about.members)
	}
}

func TestJSONSchemaAcceptsValidDocuments(t *testing.T) {
	for pattern, source := range map[string][]byte{"testdata/valid/*": JSONSchema(), "testdata/policy/valid/*": PolicyJSONSchema()} {
		published, err := schema.Compile(source)
		require.NoError(t, err)
		inputs, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, inputs)
		for _, input := range inputs {
			assert.NoError(t, published.Validate(t.Context(), document(t, input)), input)
		}
	}
}

// document returns a document of testdata as JSON.
func document(t *testing.T, file string) []byte {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	r := &reader{file: file}
	root := r.document(source)
	require.NotNil(t, root)
	return root.json()
}

// TestJSONSchemaRefuses has what the published schemas and the readers both refuse.
func TestJSONSchemaRefuses(t *testing.T) {
	manifest, err := schema.Compile(JSONSchema())
	require.NoError(t, err)
	for _, members := range []string{
		`"nmae":1`,
		`"behavior":{"read_only":true,"cache":"Off"}`,
		`"behavior":{"read_only":true,"cache":false}`,
		`"requires":["A|"]`,
		`"requires":["/../a"],"permissions":{"files":[{"path":"/a"}]}`,
		`"permissions":{"secrets":[{"name":"A","host":"a","header":"X-A","body":"a"}]}`,
		`"permissions":{"network":[{"host":"a","ports":"any"}]}`,
		`"permissions":{"network":[{"host":"a","ports":["*"]}]}`,
		`"permissions":{"secrets":[{"name":"A","host":"a"}]}`,
		`"permissions":{"secrets":[{"name":"A","host":"a","query":"a","prefix":"Bearer "}]}`,
		`"execution":"client"`,
		`"type":"Custom"`,
		`"type":"local_shell"`,
		`"parameter_aliases":{"":"a"}`,
		`"parameter_aliases":{"a b":"a"}`,
		`"parameter_aliases":{"a":1}`,
		`"parameter_aliases":{"a":{"values":{"true":1}}}`,
		`"parameter_aliases":{"a":{"parameter":"b","values":{}}}`,
		`"parameter_aliases":{"a":{"parameter":"b","value":{}}}`,
		`"format":{"type":"text"}`,
		`"type":"function","format":{"type":"text"}`,
		`"type":"custom","format":"text"`,
		`"type":"custom","format":{"type":"json"}`,
		`"type":"custom","format":{"type":"grammar"}`,
		`"type":"custom","format":{"type":"grammar","syntax":"lark"}`,
		`"type":"custom","format":{"type":"grammar","syntax":"ebnf","definition":"a"}`,
		`"type":"custom","format":{"type":"grammar","syntax":"lark","definition":""}`,
		`"type":"custom","format":{"type":"text","syntax":"lark"}`,
		`"type":"custom","format":{"type":"text","grammar":"a"}`,
	} {
		source := `{"schema":"caisson/v1","name":"a","description":"b","module":{"path":"a.wasm"},` + members + `}`
		require.Error(t, manifest.Validate(t.Context(), []byte(source)), source)
		_, err := Parse("tool.json", []byte(source))
		require.ErrorIs(t, err, ErrInvalid, source)
	}
	for _, members := range []string{
		`"stderr":"public"`,
		`"abi":"extism","libraries":["lib.wasm"]`,
		`"abi":"extism","libraries":{"lib":1}`,
		`"abi":"extism","libraries":{"lib":""}`,
		`"abi":"extism","libraries":{"a/b":"lib.wasm"}`,
		`"abi":"extism","libraries":{"a:b":"lib.wasm"}`,
		`"abi":"extism","libraries":{"":"lib.wasm"}`,
		`"abi":"extism","libraries":{"a":"a","b":"a","c":"a","d":"a","e":"a"}`,
		`"success_codes":1`,
		`"success_codes":[256]`,
		`"success_codes":[-1]`,
		`"success_codes":[1.5]`,
		`"success_codes":[0,0]`,
		`"success_codes":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]`,
	} {
		source := `{"schema":"caisson/v1","name":"a","description":"b","module":{"path":"a.wasm",` + members + `}}`
		require.Error(t, manifest.Validate(t.Context(), []byte(source)), source)
		_, err := Parse("tool.json", []byte(source))
		require.ErrorIs(t, err, ErrInvalid, source)
	}
	for _, members := range []string{
		``, `"permissions":{},`, `"limits":{},`, `"context":[],`, `"tests":[],`, `"behavior":{"snapshot":"auto"},`, `"module":{"path":"a.wasm"},`,
	} {
		source := `{"schema":"caisson/v1","name":"a","description":"b",` + members + `"execution":"client"}`
		_, err := Parse("tool.json", []byte(source))
		if members == "" {
			require.NoError(t, manifest.Validate(t.Context(), []byte(source)))
			require.NoError(t, err)
			continue
		}
		require.Error(t, manifest.Validate(t.Context(), []byte(source)), source)
		require.ErrorIs(t, err, ErrInvalid, source)
	}
	policy, err := schema.Compile(PolicyJSONSchema())
	require.NoError(t, err)
	for _, members := range []string{
		`"tool":[]`,
		`"profiles":{"strict":{}}`,
		`"context":{"a":{"from":"fixed"}}`,
		`"context":{"a":{"from":"token","value":"b"}}`,
		`"context":{"a-b":{"from":"token"}}`,
		`"grants":[{"tools":[],"context":["a"]}]`,
		`"grants":[{"tools":["a b"],"context":["a"]}]`,
		`"grants":[{"tools":["a"],"secrets":[{"name":"A","host":"a","from":{"age":"a"}}]}]`,
		`"grants":[{"tools":["a"],"secrets":[{"name":"A","host":"a","from":{"env":"A","file":"a"}}]}]`,
		`"grants":[{"tools":["a"],"secrets":[{"name":"A","host":"a","from":{"env":"A","key":"A"}}]}]`,
		`"grants":[{"tools":["a"],"secrets":[{"name":"A","host":"a","from":{"env":"A"},"prefix":"a"}]}]`,
		`"grants":[{"tools":["a"],"files":[{"path":"/a"}]}]`,
		`"grants":[{"tools":["a"],"network":[{"host":"a","connect":"localhost:80"}]}]`,
		`"grants":[{"tools":["a"],"calls":["file_*"]}]`,
		`"grants":[{"tools":["a"],"calls":["a","a"]}]`,
		`"deny":[{"call":"file_*"}]`,
		`"deny":[{"call":"a","env":"A"}]`,
		`"deny":[{"tools":["a"]}]`,
		`"deny":[{"secret":"A","env":"A"}]`,
		`"ask":[]`,
		`"ask":"file_*"`,
		`"ask":["a","a"]`,
		`"ask":["a/b"]`,
		`"ask":[{"tools":["a"]}]`,
		`"approve":["a"]`,
		`"approve":[{"tools":[]}]`,
		`"approve":[{"source":"./a"}]`,
		`"approve":[{"tools":["a"],"sha256":"9f"}]`,
		`"approve":[{"tools":["a"],"arguments":{}}]`,
	} {
		source := `{"schema":"caisson-config/v1",` + members + `}`
		require.Error(t, policy.Validate(t.Context(), []byte(source)), source)
		_, err := ParsePolicy("caisson.json", []byte(source))
		require.ErrorIs(t, err, ErrInvalid, source)
	}
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
	JSONSchema()[0], PolicyJSONSchema()[0] = 'x', 'x'
	assert.Equal(t, byte('{'), JSONSchema()[0])
	assert.Equal(t, byte('{'), PolicyJSONSchema()[0])
}
