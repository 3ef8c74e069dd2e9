package manifests_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func load(t *testing.T, name string) *manifests.Manifest {
	t.Helper()
	m := must(manifests.Load(filepath.Join("testdata", "valid", name)))
	return m
}

func TestLoadReadsEveryKey(t *testing.T) {
	m := load(t, "fetch_page.tool.yaml")
	yes, no, output := true, false, "hello"
	assert.Equal(t, filepath.Join("testdata", "valid", "fetch_page.tool.yaml"), m.File)
	assert.Equal(t, "fetch_page", m.Name)
	assert.Equal(t, "Fetch page", m.Label)
	assert.Equal(t, "Reads a page.", m.Summary)
	assert.Equal(t, "Fetch one web page and return its text, links or structure.", m.Description)
	assert.Equal(t, "1.0.0", m.Version)
	assert.Equal(t, "web", m.Category)
	assert.Equal(t, modules.Module{
		Path: "fetch_page.wasm", SHA256: "9f2c0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7", ABI: modules.ABIWASI,
		Stdin: modules.Stdin{Mode: modules.StdinArguments}, Stdout: modules.StdoutAuto, Stderr: modules.StderrPrivate, SuccessCodes: []int{1},
	}, m.Module)
	assert.JSONEq(t, `{"type":"object"}`, string(m.Result.JSON()))
	assert.Equal(t, manifests.Permissions{
		Files:   []manifests.FilePermission{{Path: permission.NewGuestPath("/project"), Access: manifests.AccessRead}},
		Network: []manifests.NetworkPermission{{Host: "*.example.com", Ports: []int{443}, Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/api/"}}},
		Secrets: []manifests.SecretPermission{{Name: "SEARCH_KEY", Place: manifests.SecretPlace{Header: "X-Api-Key"}, Host: "api.search.example"}},
		Env:     []string{"LANG"},
		KV:      &manifests.KVPermission{Bytes: 1 << 20},
		Tools:   []string{"web_search"},
		LLM:     &manifests.LLMPermission{Tokens: 4000},
	}, m.Permissions)
	assert.Equal(t, manifests.Limits{
		Memory: 64 << 20, Timeout: 10 * time.Second, Fuel: 2_000_000_000, Output: 256 << 10, Stderr: 64 << 10,
		HTTPCalls: 20, HTTPBytes: 8 << 20, OpenFiles: 64, DiskBytes: 64 << 20,
	}, m.Limits)
	assert.Equal(t, []string{"project_id"}, m.Context)
	assert.Equal(t, manifests.Behavior{ReadOnly: true, Idempotent: true, Cache: 5 * time.Minute, Snapshot: manifests.SnapshotAuto}, m.Behavior)
	assert.Equal(t, manifests.ExecutionSandbox, m.Execution)
	assert.Equal(t, []string{"SEARCH_KEY"}, m.Requires)
	assert.Equal(t, []string{"web_fetch"}, m.Aliases)
	assert.Equal(t, []string{"crawl_page"}, m.Retired)
	assert.Equal(t, &manifests.Deprecated{Since: "1.1.0", Use: "fetch_page2", Message: "fetch_page2 renders scripts.", Alias: "web_fetch"}, m.Deprecated)
	page := map[string]string{"/project/page.html": "<p>hello"}
	assert.Equal(t, []manifests.Test{
		{Name: "needs a url", Arguments: json.RawMessage(`{}`), Expect: manifests.Expect{Success: &no, Error: "url"}},
		{
			Name: "reads a saved page", Arguments: json.RawMessage(`{"url":"file:page.html","depth":1.50}`),
			Context: map[string]string{"project_id": "demo"}, Files: page,
			Expect: manifests.Expect{Success: &yes, Output: &output, Data: json.RawMessage(`{"words":1,"ratio":0.10}`), Files: page},
		},
		{Name: "is denied", Arguments: json.RawMessage(`{"url":"x"}`), Expect: manifests.Expect{Success: &no, Kind: "denied"}},
	}, m.Tests)
}

func TestParseFillsInDefaults(t *testing.T) {
	m := load(t, "minimal.tool.json")
	assert.Equal(t, "Does 😀 nothing.", m.Description)
	assert.Equal(t, `{"type":"object","properties":{}}`, string(m.ModelParameters))
	require.NoError(t, m.Parameters.Validate(t.Context(), []byte(`{}`)))
	require.Error(t, m.Parameters.Validate(t.Context(), []byte(`[]`)))
	assert.Nil(t, m.Result)
	assert.Equal(t, modules.Stdin{Mode: modules.StdinArguments}, m.Module.Stdin)
	assert.Equal(t, modules.StdoutAuto, m.Module.Stdout)
	assert.Equal(t, manifests.SnapshotAuto, m.Behavior.Snapshot)
	assert.Equal(t, manifests.ExecutionSandbox, m.Execution)

	m = load(t, "wrapped.tool.yaml")
	assert.Equal(t, "Search text for a pattern.\nPrints the lines that match.", m.Description)
	assert.Equal(t, modules.Stdin{Mode: modules.StdinParam, Param: "text"}, m.Module.Stdin)
	assert.Len(t, m.Module.Args, 7)
	assert.Equal(t, []manifests.NetworkPermission{
		{Host: "*", Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/"}},
		{Host: "192.0.2.1", Ports: []int{8080}, Methods: []string{"GET", "POST"}, Schemes: []string{"http"}, Paths: []string{"/"}},
		{Host: "2001:db8::1", Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/"}},
	}, m.Permissions.Network)
	assert.Equal(t, manifests.Limits{Memory: 10_000_000, Timeout: 90 * time.Second, Output: 512}, m.Limits)

	assert.Equal(t, `{"type":"object","properties":{"text":{"type":"string"}}}`, string(load(t, "plugin.tool.yaml").ModelParameters))
}

const head = "schema: caisson/v1\nname: a\ndescription: Does nothing.\nmodule: {path: a.wasm}\n"

func parse(t *testing.T, body string) *manifests.Manifest {
	t.Helper()
	m := must(manifests.Parse("tool.yaml", []byte(head+body)))
	return m
}

func problems(t *testing.T, body string) []manifests.Problem {
	t.Helper()
	_, err := manifests.Parse("tool.yaml", []byte(head+body))
	var invalid *manifests.Error
	require.ErrorAs(t, err, &invalid, body)
	require.ErrorIs(t, err, manifests.ErrInvalid)
	return invalid.Problems
}

func TestCacheIsALengthOfTimeOrOff(t *testing.T) {
	for text, want := range map[string]time.Duration{"5m": 5 * time.Minute, "off": manifests.CacheOff, `"off"`: manifests.CacheOff} {
		assert.Equal(t, want, parse(t, "behavior: {read_only: true, cache: "+text+"}\n").Behavior.Cache, text)
	}
	assert.Zero(t, parse(t, "behavior: {read_only: true}\n").Behavior.Cache)
	assert.Negative(t, manifests.CacheOff)
	m := must(manifests.Parse("tool.json", []byte(`{"schema":"caisson/v1","name":"a","description":"b","module":{"path":"a.wasm"},"behavior":{"read_only":true,"cache":"off"}}`)))
	assert.Equal(t, manifests.CacheOff, m.Behavior.Cache)
}

// TestToolsMayAskToCallThemselves: how deep calls go is bounded elsewhere.
func TestToolsMayAskToCallThemselves(t *testing.T) {
	m := parse(t, "permissions: {tools: [other]}\n")
	assert.Equal(t, []string{"other"}, m.Permissions.Tools)
	m = parse(t, "permissions: {tools: ["+m.Name+"]}\n")
	assert.Equal(t, []string{m.Name}, m.Permissions.Tools)
}

func TestContextIsHiddenFromTheModel(t *testing.T) {
	m := parse(t, `
context: [project_id, tenant]
parameters:
  required: [project_id, url]
  properties:
    url: {type: string, maxLength: 10, default: "<&>"}
    project_id: {type: string, minLength: 3}
    count: {const: 12345678901234567890.10}
  additionalProperties: false
  type: object
`)
	assert.Equal(t, `{"required":["url"],"properties":{"url":{"type":"string","maxLength":10,"default":"<&>"},"count":{"const":12345678901234567890.10}},"additionalProperties":false,"type":"object"}`, string(m.ModelParameters))
	require.NoError(t, m.Parameters.Validate(t.Context(), []byte(`{"url":"x","project_id":"demo","tenant":{"any":"thing"}}`)))
	assert.ErrorContains(t, m.Parameters.Validate(t.Context(), []byte(`{"url":"x"}`)), "project_id: required, but missing")
	assert.ErrorContains(t, m.Parameters.Validate(t.Context(), []byte(`{"url":"x","project_id":"d"}`)), "project_id: must have at least 3")
	assert.Error(t, m.Parameters.Validate(t.Context(), []byte(`{"url":"x","project_id":"demo","other":1}`)))

	m = parse(t, "context: [project_id]\nparameters: {properties: {project_id: {}}, required: [project_id]}\n")
	assert.Equal(t, `{"type":"object","properties":{}}`, string(m.ModelParameters), "an empty list of required names says nothing")
}

// TestModelsSeePointersOnly: references by an $id and by an anchor are shown to models as JSON pointers, and
// mean the same.
func TestModelsSeePointersOnly(t *testing.T) {
	m := parse(t, `
parameters:
  $id: https://example.com/order
  properties:
    item: {$ref: item}
    note: {$ref: "#note"}
  $defs:
    item: {$id: item, properties: {count: {$ref: "#/$defs/count"}}, $defs: {count: {type: integer}}}
    count: {type: string}
    text: {$anchor: note, type: string}
`)
	assert.JSONEq(t, `{"$id":"https://example.com/order","type":"object","properties":{"item":{"$ref":"#/$defs/item"},"note":{"$ref":"#/$defs/text"}},"$defs":{
		"item":{"properties":{"count":{"$ref":"#/$defs/item/$defs/count"}},"$defs":{"count":{"type":"integer"}}},"count":{"type":"string"},"text":{"type":"string"}}}`, string(m.ModelParameters))
	shown, err := schema.Compile(m.ModelParameters)
	require.NoError(t, err)
	for _, s := range []*schema.Schema{m.Parameters, shown} {
		require.NoError(t, s.Validate(t.Context(), []byte(`{"item":{"count":1},"note":"x"}`)))
		require.ErrorContains(t, s.Validate(t.Context(), []byte(`{"item":{"count":"x"},"note":1}`)), "item.count: want integer")
	}
}

func TestContextNamesCannotBeImitated(t *testing.T) {
	for path, parameters := range map[string]string{
		"parameters.properties.Project_ID":                    "{properties: {Project_ID: {}}}",
		`parameters.properties["project_iD\u017f"]`:           "{properties: {project_iDſ: {}}}",
		"parameters.required[0]":                              "{required: [PROJECT_IDs]}",
		"parameters.allOf[0].properties.project_ids":          "{allOf: [{properties: {project_ids: {}}}]}",
		"parameters.then.required[0]":                         "{if: {}, then: {required: [project_ids]}}",
		"parameters.anyOf[0].oneOf[0].properties.projecT_ids": "{anyOf: [{oneOf: [{properties: {projecT_ids: {}}}]}]}",
	} {
		body := "context: [project_ids]\nparameters: " + parameters + "\n"
		if strings.Contains(path, "Project_ID") {
			body = "context: [project_id]\nparameters: " + parameters + "\n"
		}
		found := problems(t, body)
		require.Len(t, found, 1, body)
		assert.Equal(t, mistake.Conflict, found[0].Kind)
		if !strings.Contains(parameters, "ſ") {
			assert.Equal(t, path, found[0].Path)
		}
	}
}

func TestLine(t *testing.T) {
	m := load(t, "fetch_page.tool.yaml")
	for path, line := range map[string]int{
		"schema": 1, "permissions": 20, "permissions.network": 22, "permissions.network[0].host": 22, "permissions.network[7].host": 22,
		"permissions.tools[0]": 26, "limits.memory": 28, "tests[1].expect.output": 54, "nowhere": 0, "": 0,
		`tests[1].files["/project/page.html"]`: 50,
		`tests[1].files["/not.there"]`:         50,
	} {
		assert.Equal(t, line, m.Line(path), path)
	}
}

func TestHiddenText(t *testing.T) {
	for name, c := range map[string]string{
		"a bell": `\a`, "escape": `\e`, "carriage return": `\r`, "zero width space": `\u200b`, "right-to-left override": `\u202e`, "isolate": `\u2066`,
		"soft hyphen": `\u00ad`, "tag": `\U000e0041`, "variation selector": `\U000e0101`, "filler": `\u3164`, "private use": `\ue000`, "line separator": `\u2028`,
		"byte order mark": `\ufeff`, "two joiners": `\u200d\u200c`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, body := range []string{
				`label: "a` + c + `b"`,
				`parameters: {properties: {x: {description: "a` + c + `b"}}}`,
				`parameters: {properties: {"x` + c + `": {}}}`,
				`result: {properties: {x: {enum: ["a` + c + `b"]}}}`,
			} {
				found := problems(t, body)
				require.Len(t, found, 1)
				assert.Equal(t, mistake.InvalidValue, found[0].Kind)
				assert.Contains(t, found[0].Message, "invisible or directional")
			}
		})
	}
	parse(t, "label: \"👩\u200d👩\u200d👧 ❤\ufe0f नमस्ते می\u200cخواهم 日本語\"")
}

func TestHosts(t *testing.T) {
	for _, host := range []string{"example.com", "*.example.com", "localhost", "xn--bcher-kva.example", "a_b.example", "10.0.0.1", "::1", "*", "*.com"} {
		m := parse(t, `permissions: {network: [{host: "`+host+`"}]}`)
		assert.Equal(t, host, m.Permissions.Network[0].Host)
	}
	for _, host := range []string{
		"", "https://example.com", "example.com:443", "user@example.com", "example.com/x", "example.com.", ".example.com", "a..b", "*example.com", "a.*.com",
		"**.example.com", "[::1]", "fe80::1%eth0", "127.1", "0x7f000001", "2130706433", "0177.0.0.01", "bücher.example", "a b", "-a.example", "a-.example",
		"*.10.0.0.1", "*.*.example.com", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "example", "1.2.3.4.5", "*.",
	} {
		found := problems(t, `permissions: {network: [{host: "`+host+`"}]}`)
		assert.Equal(t, "permissions.network[0].host", found[0].Path, host)
	}
	for _, host := range []string{"*", "*.example.com"} {
		found := problems(t, `permissions: {secrets: [{name: A, header: X-A, host: "`+host+`"}]}`)
		assert.Equal(t, "permissions.secrets[0].host", found[0].Path, "a secret goes to one host")
	}
}

func TestSecretPlaces(t *testing.T) {
	for text, place := range map[string]manifests.SecretPlace{
		"header: X-Api-Key":                           {Header: "X-Api-Key"},
		`header: Authorization, prefix: "Bearer "`:    {Header: "Authorization", Prefix: "Bearer "},
		"query: api_key":                              {Query: "api_key"},
		"body: api_key":                               {Body: "api_key"},
		`"prefix": "Token token=", "header": "X-Key"`: {Header: "X-Key", Prefix: "Token token="},
	} {
		m := parse(t, "permissions: {secrets: [{name: A, host: a.example, "+text+"}]}")
		assert.Equal(t, []manifests.SecretPermission{{Name: "A", Host: "a.example", Place: place}}, m.Permissions.Secrets, text)
	}
	for text, path := range map[string]string{
		"":                                   "",
		", header: X-A, query: a":            "",
		", header: X-A, body: a":             "",
		", query: a, body: a":                "",
		", query: a, prefix: x":              ".prefix",
		", body: a, prefix: x":               ".prefix",
		`, header: X-A, prefix: ""`:          ".prefix",
		`, header: X-A, prefix: " x"`:        ".prefix",
		`, header: X-A, prefix: "a\r\nX: y"`: ".prefix",
		`, header: X-A, prefix: "é"`:         ".prefix",
		`, body: "a b"`:                      ".body",
		`, body: ""`:                         ".body",
		", header: Content-Length":           ".header",
	} {
		found := problems(t, "permissions: {secrets: [{name: A, host: a.example"+text+"}]}")
		require.Len(t, found, 1, text)
		assert.Equal(t, "permissions.secrets[0]"+path, found[0].Path, text)
	}
}

func TestRequirementsMayBeAlternatives(t *testing.T) {
	m := parse(t, `requires: [A, "B|C", "  D |  E|_f1 "]`)
	assert.Equal(t, []string{"A", "B|C", "D|E|_f1"}, m.Requires)
	m = parse(t, "requires: [/a, ' A | /b/c-d.e ']\npermissions: {files: [{path: /a}, {path: /b/c-d.e}]}")
	assert.Equal(t, []string{"/a", "A|/b/c-d.e"}, m.Requires)
	for _, text := range []string{"", "|", "A|", "|A", "A||B", "A B", "A|1B", "A,B", "A|A", "A\t|B", "/", "/a/", "/a//b", "/../a", "/a b", "A|a/b", "/a"} {
		found := problems(t, `requires: ["`+text+`"]`)
		require.Len(t, found, 1, text)
		assert.Equal(t, "requires[0]", found[0].Path, text)
	}
	found := problems(t, `requires: ["A|B", "A | B"]`)
	require.Len(t, found, 1)
	assert.Equal(t, mistake.DuplicateKey, found[0].Kind)
}

func TestGuestPaths(t *testing.T) {
	for _, path := range []string{"/", "/project", "/a/b.c"} {
		assert.Equal(t, path, parse(t, `permissions: {files: [{path: "`+path+`"}]}`).Permissions.Files[0].Path.String())
	}
	for _, path := range []string{"", "project", "/project/", "//", "/a/../b", "/..", "/a/./b", "/a//b", `/a\\b`, `/a\nb`, `/a\u202eb`, "~"} {
		found := problems(t, `permissions: {files: [{path: "`+path+`"}]}`)
		assert.Equal(t, "permissions.files[0].path", found[0].Path, path)
	}
	for _, pair := range []string{"/a, /a", "/a, /a/b", "/a/b, /a", "/, /a", "/a, /"} {
		first, second, _ := strings.Cut(pair, ", ")
		found := problems(t, `permissions: {files: [{path: `+first+`}, {path: `+second+`}]}`)
		require.Len(t, found, 1)
		assert.Equal(t, mistake.Conflict, found[0].Kind)
	}
	parse(t, `permissions: {files: [{path: /a}, {path: /ab}, {path: /b/a}]}`)
}

func TestModulePaths(t *testing.T) {
	replace := func(path string) string {
		return strings.Replace(head, "a.wasm", `"`+path+`"`, 1)
	}
	for _, path := range []string{"a.wasm", "bin/a.wasm", "oci://ghcr.io/a/b:1", "oci://localhost:5000/a@sha256:" + strings.Repeat("0", 64)} {
		m, err := manifests.Parse("tool.yaml", []byte(replace(path)))
		require.NoError(t, err, path)
		assert.Equal(t, path, m.Module.Path)
	}
	for _, path := range []string{"", ".", "..", "../a.wasm", "/a.wasm", "a/../b.wasm", "./a.wasm", "a//b", "a/", `a\\b`, `C:/a`, "https://x/a.wasm", "oci://", "oci://host", "oci:host/a", "oci://host/A", `a\u202e.wasm`} {
		require.ErrorIs(t, errOf(manifests.Parse("tool.yaml", []byte(replace(path)))), manifests.ErrInvalid, path)
	}
}

func TestIsManifestName(t *testing.T) {
	for _, name := range []string{"tool.yaml", "tool.yml", "tool.json", "file_read.tool.yaml", "a.tool.yml", "a.tool.json", "a.b.tool.yaml"} {
		assert.True(t, manifests.IsManifestName(name), name)
	}
	for _, name := range []string{"", "tool", "Tool.yaml", "xtool.yaml", ".tool.yaml", "tool.yaml.bak", "caisson.yaml", "tool.toml", "a.tool.yaml~"} {
		assert.False(t, manifests.IsManifestName(name), name)
	}
}

func TestLoadReadsRegularFilesOnly(t *testing.T) {
	folder := t.TempDir()
	require.ErrorIs(t, errOf(manifests.Load(folder)), manifests.ErrFile)
	_, err := manifests.Load(filepath.Join(folder, "none.yaml"))
	require.ErrorIs(t, err, manifests.ErrFile)
	require.ErrorIs(t, err, os.ErrNotExist)

	large := filepath.Join(folder, "tool.yaml")
	require.NoError(t, os.WriteFile(large, []byte(head+"# "+strings.Repeat("x", manifests.MaxBytes)), 0o600))
	_, err = manifests.Load(large)
	require.ErrorIs(t, err, manifests.ErrFile)
	assert.ErrorContains(t, err, "larger than 1048576 bytes")
}

func TestProblemOnTheWire(t *testing.T) {
	got := must(json.Marshal(problems(t, "limit: {}")[0]))
	assert.JSONEq(t, `{"file":"tool.yaml","line":5,"column":1,"path":"limit","kind":"unknown_key","message":"unknown key \"limit\"","fix":"did you mean limits?"}`, string(got))
}

// TestFinalAndDefinitionOnly: a manifest says whether a result may be shown unchanged, and whether the tool is only a
// definition.
func TestFinalAndDefinitionOnly(t *testing.T) {
	m := parse(t, "behavior: {final: true}\n")
	assert.True(t, m.Behavior.Final)
	assert.Equal(t, manifests.ExecutionSandbox, m.Execution)
	assert.Equal(t, tool.FunctionCall, m.Type)

	m = load(t, "client.tool.yaml")
	assert.False(t, m.Behavior.Final)
	assert.Equal(t, manifests.ExecutionClient, m.Execution)
	assert.Empty(t, m.Module.Path)
}

func TestTypesAreThoseOfCalls(t *testing.T) {
	assert.Equal(t, tool.FunctionCall, string(tool.FunctionCall))
	assert.Equal(t, tool.CustomCall, string(tool.CustomCall))
	assert.Equal(t, tool.LocalShellCall, string(tool.LocalShellCall))
}

func TestCustomTool(t *testing.T) {
	m := load(t, "custom.tool.yaml")
	assert.Equal(t, tool.CustomCall, m.Type)
	assert.Equal(t, "query", m.TextParameter(), "what the host fills in is not for the model's text")
	assert.Equal(t, `{"type":"grammar","syntax":"lark","definition":"start: \"select\" WORD\nWORD: /[a-z]+/\n"}`, string(m.Format))
	require.NoError(t, m.Parameters.Validate(t.Context(), []byte(`{"query":"select a","project_id":"demo"}`)))
	assert.Empty(t, load(t, "minimal.tool.json").TextParameter())
	assert.Empty(t, new(manifests.Manifest).TextParameter())
	assert.Empty(t, (&manifests.Manifest{Type: tool.CustomCall, ModelParameters: json.RawMessage(`{"properties":{"a":{},"b":{}}}`)}).TextParameter())
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

// TestParametersOfACustomTool: whatever text a model writes, it can be made into arguments that have the right form.
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
	m := must(manifests.Parse("tool.yaml", document(declared, "  required: [command]\n  additionalProperties: false\n")))
	assert.Equal(t, tool.LocalShellCall, m.Type)
	assert.Empty(t, m.TextParameter())
	require.NoError(t, errOf(manifests.Parse("tool.yaml", document(declared, "  required: [command, env]\n"))), "each call that OpenAI's API gives has both")
	_, err := manifests.Parse("tool.yaml", document(declared[:1], "  required: [command]\n"))
	require.NoError(t, err, "a call may also have undeclared arguments")

	for i := range declared {
		require.ErrorIs(t, errOf(manifests.Parse("tool.yaml", document(slices.Delete(slices.Clone(declared), i, i+1), "  required: [command]\n  additionalProperties: false\n"))), manifests.ErrInvalid, "without %s", declared[i])
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
		require.ErrorIs(t, errOf(manifests.Parse("tool.yaml", broken)), manifests.ErrInvalid, name)
	}
}

// must returns the result of a step that does not fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// errOf returns the error of a call whose result does not matter.
func errOf[T any](_ T, err error) error { return err }

// TestManifestsOfExtismAreRecognised: what to do depends on why they were read as Caisson's.
func TestManifestsOfExtismAreRecognised(t *testing.T) {
	for _, c := range []struct{ file, text, fix string }{
		{"plugin.json", `{"wasm": [{"path": "a.wasm"}]}`, "load it with package runtime/extism"},
		{"plugin.json", `{"schema": "caisson/v1", "wasm": [{"path": "a.wasm"}]}`, "remove schema"},
		{"plugin.txt", `{"wasm": [{"path": "a.wasm"}]}`, "give the file a name that ends in .json"},
	} {
		_, err := manifests.Parse(c.file, []byte(c.text))
		require.ErrorContains(t, err, "if this is a manifest of Extism, "+c.fix)
	}
}
