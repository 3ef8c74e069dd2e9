package manifests_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestRowS4_1ManifestsSayFinalAndDefinition: whether a result may be shown as it is, and whether a
// tool is a definition alone, stands in its manifest.
func TestRowS4_1ManifestsSayFinalAndDefinition(t *testing.T) {
	m := parse(t, "behavior: {final: true}\n")
	assert.True(t, m.Behavior.Final)
	assert.Equal(t, manifests.Sandbox, m.Execution)
	assert.Equal(t, manifests.FunctionTool, m.Type)

	m = load(t, "client.tool.yaml")
	assert.False(t, m.Behavior.Final)
	assert.Equal(t, manifests.Client, m.Execution)
	assert.Empty(t, m.Module.Path)
}

func TestTypesAreThoseOfCalls(t *testing.T) {
	assert.Equal(t, tool.FunctionCall, string(manifests.FunctionTool))
	assert.Equal(t, tool.CustomCall, string(manifests.CustomTool))
	assert.Equal(t, tool.LocalShellCall, string(manifests.LocalShellTool))
}

func TestCustomTool(t *testing.T) {
	m := load(t, "custom.tool.yaml")
	assert.Equal(t, manifests.CustomTool, m.Type)
	assert.Equal(t, "query", m.TextParameter(), "what the host fills in is not for the model's text")
	assert.Equal(t, `{"type":"grammar","syntax":"lark","definition":"start: \"select\" WORD\nWORD: /[a-z]+/\n"}`, string(m.Format))
	require.NoError(t, m.Parameters.Validate(t.Context(), []byte(`{"query":"select a","project_id":"demo"}`)))
	assert.Empty(t, load(t, "minimal.tool.json").TextParameter())
	assert.Empty(t, new(manifests.Manifest).TextParameter())
	assert.Empty(t, (&manifests.Manifest{Type: manifests.CustomTool, ModelParameters: json.RawMessage(`{"properties":{"a":{},"b":{}}}`)}).TextParameter())
}

const oneText = "type: custom\nparameters: {properties: {text: {type: string}}, required: [text]}\n"

func TestFormatOfACustomTool(t *testing.T) {
	assert.Nil(t, parse(t, oneText).Format)
	for written, want := range map[string]string{
		"{type: text}": `{"type":"text"}`,
		"{definition: 'a: /b/', syntax: lark, type: grammar}":    `{"type":"grammar","syntax":"lark","definition":"a: /b/"}`,
		`{type: grammar, syntax: regex, definition: "^<a>&\n$"}`: `{"type":"grammar","syntax":"regex","definition":"^<a>&\n$"}`,
	} {
		assert.Equal(t, want, string(parse(t, oneText+"format: "+written+"\n").Format))
	}
	for written, path := range map[string]string{
		"text":               "format",
		"{}":                 "format.type",
		"{type: Text}":       "format.type",
		"{type: text, x: 1}": "format.x",
		"{type: grammar, syntax: lark, definition: \"a\\u202eb\"}":                           "format.definition",
		"{type: grammar, syntax: lark, definition: '" + strings.Repeat("a", 64<<10+1) + "'}": "format.definition",
		"{type: grammar, syntax: lark, definition: 1}":                                       "format.definition",
	} {
		assert.Equal(t, []string{path}, paths(problems(t, oneText+"format: "+written+"\n")), written)
	}
}

func paths(problems []manifests.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Path)
	}
	return all
}

// TestParametersOfACustomTool: whatever text a model writes, it can be made into arguments that have
// the right form.
func TestParametersOfACustomTool(t *testing.T) {
	for _, parameters := range []string{
		"{properties: {text: {type: string, description: Some., minLength: 2}}, required: [text], additionalProperties: false}",
		"{type: object, title: A, description: B, $comment: C, properties: {text: {type: string}}, required: [text]}",
	} {
		assert.Equal(t, "text", parse(t, "type: custom\nparameters: "+parameters+"\n").TextParameter())
	}
	for parameters, want := range map[string][]string{
		"{}":                                   {"parameters"},
		"{properties: {}, required: []}":       {"parameters"},
		"{properties: {text: {type: string}}}": {"parameters.properties.text"},
		"{properties: {text: {type: integer}}, required: [text]}":                                 {"parameters.properties.text"},
		"{properties: {text: {}}, required: [text]}":                                              {"parameters.properties.text"},
		"{properties: {text: true}, required: [text]}":                                            {"parameters.properties.text"},
		"{properties: {text: {type: [string, integer]}}, required: [text]}":                       {"parameters.properties.text"},
		"{properties: {text: {$ref: '#/$defs/a'}}, required: [text], $defs: {a: {type: string}}}": {"parameters.$defs", "parameters.properties.text"},
		"{properties: {text: {type: string}, more: {type: string}}, required: [text]}":            {"parameters"},
		"{properties: {text: {type: string}}, required: [text], additionalProperties: {}}":        {"parameters.additionalProperties"},
		"{properties: {text: {type: string}}, required: [text], additionalProperties: true}":      {"parameters.additionalProperties"},
		"{properties: {text: {type: string}}, required: [text, other]}":                           {"parameters.required[1]"},
		"{properties: {text: {type: string}}, required: [text], not: {}}":                         {"parameters.not"},
		"{properties: {text: {type: string}}, required: [text], patternProperties: {a: true}}":    {"parameters.patternProperties"},
	} {
		found := paths(problems(t, "type: custom\nparameters: "+parameters+"\n"))
		slices.Sort(found)
		assert.Equal(t, want, found, parameters)
	}
	assert.Equal(t, []string{"parameters"}, paths(problems(t, "type: custom\n")))
}

const shellHead = "schema: caisson/v1\nname: a\ndescription: Runs a command.\nexecution: client\ntype: local_shell\nparameters:\n  properties:\n"

func TestLocalShell(t *testing.T) {
	declared := []string{"command: {type: array, items: {type: string}}", "env: {type: object, additionalProperties: {type: string}}", "working_directory: {type: string}", "timeout_ms: {type: integer}", "user: {type: string}"}
	document := func(properties []string, rest string) []byte {
		return []byte(shellHead + "    " + strings.Join(properties, "\n    ") + "\n" + rest)
	}
	m, err := manifests.Parse("tool.yaml", document(declared, "  required: [command]\n  additionalProperties: false\n"))
	require.NoError(t, err)
	assert.Equal(t, manifests.LocalShellTool, m.Type)
	assert.Empty(t, m.TextParameter())
	_, err = manifests.Parse("tool.yaml", document(declared, "  required: [command, env]\n"))
	require.NoError(t, err, "each call that OpenAI's API gives has both")
	_, err = manifests.Parse("tool.yaml", document(declared[:1], "  required: [command]\n"))
	require.NoError(t, err, "what is not declared may come all the same")

	for i := range declared {
		_, err = manifests.Parse("tool.yaml", document(slices.Delete(slices.Clone(declared), i, i+1), "  required: [command]\n  additionalProperties: false\n"))
		require.ErrorIs(t, err, manifests.ErrInvalid, "without %s", declared[i])
	}
	for name, broken := range map[string][]byte{
		"nothing is required":    document(declared, ""),
		"a time is required":     document(declared, "  required: [command, timeout_ms]\n"),
		"one word is allowed":    document(append([]string{"command: {type: array, maxItems: 1}"}, declared[1:]...), "  required: [command]\n"),
		"the command is a text":  document(append([]string{"command: {type: string}"}, declared[1:]...), "  required: [command]\n"),
		"no variable is allowed": document(append([]string{declared[0], "env: {type: object, maxProperties: 0}"}, declared[2:]...), "  required: [command]\n"),
		"more is declared":       document(append([]string{"shell: {type: string}"}, declared...), "  required: [command]\n"),
		"a keyword refuses":      document(declared, "  required: [command]\n  maxProperties: 1\n"),
		"it has a format":        document(declared, "  required: [command]\nformat: {type: text}\n"),
		"it runs in a sandbox":   []byte(strings.Replace(string(document(declared, "  required: [command]\n")), "execution: client", "module: {path: a.wasm}", 1)),
	} {
		_, err := manifests.Parse("tool.yaml", broken)
		require.ErrorIs(t, err, manifests.ErrInvalid, name)
	}
}
