package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

func TestRemedy(t *testing.T) {
	asks := json.RawMessage(`{"network":[{"host":"a.test"}]}`)
	for _, test := range []struct {
		allow tool.Allow
		want  []string
	}{
		{tool.Allow{}, nil},
		{tool.Allow{Manifest: asks}, []string{"the manifest must request it: permissions: {network: [{host: a.test}]}"}},
		{tool.Allow{Grant: json.RawMessage(`{"tools":["a"],"env":{"LANG":null}}`)}, []string{"allow it in ops.yaml, under grants: - {tools: [a], env: {LANG: VALUE}}"}},
		{tool.Allow{Manifest: asks, Grant: json.RawMessage(`{"tools":["a"],"network":[{"host":"a.test"}]}`)}, []string{
			"the manifest must request it: permissions: {network: [{host: a.test}]}", "allow it with --allow-net a.test",
			"or in ops.yaml, under grants: - {tools: [a], network: [{host: a.test}]}",
		}},
		{tool.Allow{Manifest: json.RawMessage(`{"context":["p"]}`), Grant: json.RawMessage(`{"context":{"p":{"from":"fixed","value":null}}}`)}, []string{
			"the manifest must request it: context: [p]", "allow it with --context p=VALUE", "or in ops.yaml: context: {p: {from: fixed, value: VALUE}}",
		}},
		{tool.Allow{Manifest: json.RawMessage(`"text"`), Grant: json.RawMessage(`{"tools":`)}, nil},
	} {
		assert.Equal(t, test.want, RemedyOf(test.allow, "").Hints("the manifest", "ops.yaml"))
	}
}

// TestRemedyInExtismsWords: a manifest of Extism cannot have the lines of ours.
func TestRemedyInExtismsWords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plugin.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"wasm": [{"path": "plugin.wasm"}]}`), 0o600))
	for rule, want := range map[string]string{
		`{"network":[{"host":"a.test"},{"host":"*.b.test","ports":[8080]}]}`:                 `"allowed_hosts": ["a.test", "*.b.test"]`,
		`{"files":[{"path":"/data","access":"read"},{"path":"/a b","access":"read-write"}]}`: `"allowed_paths": {"ro:HOSTDIR": "/data", "HOSTDIR": "/a b"}`,
		`{"functions":["double"]}`: "permissions: {functions: [double]}, which needs a manifest of Caisson: those of Extism cannot have it",
		`{"context":["p"]}`:        "context: [p], which needs a manifest of Caisson: those of Extism cannot have it",
		`"text"`:                   "",
		``:                         "",
	} {
		assert.Equal(t, want, RemedyOf(tool.Allow{Manifest: json.RawMessage(rule)}, file).Manifest, rule)
	}
}

func TestFlagsForRules(t *testing.T) {
	for rule, want := range map[string]string{
		`"files":[{"path":"/project","host":null,"access":"read"}]`:       "--mount /project=HOSTDIR:ro",
		`"files":[{"path":"/project","host":null,"access":"read-write"}]`: "--mount /project=HOSTDIR:rw",
		`"files":[{"path":"/a b","host":null}]`:                           "--mount '/a b=HOSTDIR:ro'",
		`"files":[{"path":"/дата","host":null}]`:                          "--mount /дата=HOSTDIR:ro",
		`"files":[{"path":"/a=/etc:rw","host":null}]`:                     "", // which could be read as flags are
		`"files":[{"path":"/a*","host":null}]`:                            "",
		`"files":[{"path":"/a","host":null,"quota":"1MiB"}]`:              "",
		`"files":[{"path":"/a","host":"/etc"}]`:                           "",

		`"network":[{"host":"api.example.com"}]`:                                                     "--allow-net api.example.com",
		`"network":[{"host":"api.example.com","methods":["POST"],"paths":["/v1"]}]`:                  "--allow-net api.example.com",
		`"network":[{"host":"api.example.com","ports":[8080],"schemes":["http"]}]`:                   "--allow-net http://api.example.com:8080",
		`"network":[{"host":"*.example.com","schemes":["https","http"]}]`:                            "--allow-net '*.example.com'",
		`"network":[{"host":"2606:4700::1111","ports":[8443]}]`:                                      "--allow-net '[2606:4700::1111]:8443'",
		`"network":[{"host":"a.example","ports":[80,443]}]`:                                          "--allow-net a.example:80 --allow-net a.example",
		`"network":[{"host":"a.example","ports":[80],"schemes":["http","https"]}]`:                   "--allow-net http://a.example --allow-net a.example:80",
		`"network":[{"host":"a.example","methods":["PROPFIND"]}]`:                                    "",
		`"network":[{"host":"a.example","addresses":["10.0.0.0/8"]}]`:                                "",
		`"network":[{"host":"a.example"},{"host":"a.example","methods":["PROPFIND"]}]`:               "",
		`"network":[{"host":"a.example"}],"files":[{"path":"/a","host":null}],"calls":["x"]`:         "--mount /a=HOSTDIR:ro --allow-net a.example --allow-call x",
		`"secrets":[{"name":"K","from":{"env":"K"},"host":"a.example"}]`:                             "--secret K=env:K@a.example",
		`"secrets":[{"name":"K","from":{"env":"K"},"host":null}]`:                                    "--secret K=env:K@HOST",
		`"secrets":[{"name":"K","from":{"env":"K"},"host":"2001:db8::1"}]`:                           "--secret 'K=env:K@[2001:db8::1]'",
		`"secrets":[{"name":"K","from":{"env":"K"},"host":"a.b","ports":[8080],"schemes":["http"]}]`: "--secret K=env:K@http://a.b:8080",
		`"secrets":[{"name":"K","from":{"env":"K"},"host":"a.b","schemes":["http","https"]}]`:        "",
		`"secrets":[{"name":"K","from":{"env":"K"},"host":"a.b","query":"q"}]`:                       "", // a flag cannot name the place
		`"secrets":[{"name":"K","from":{"file":"k"},"host":"a.b"}]`:                                  "",
		`"context":["project_id","user"]`:                                                            "--context project_id=VALUE --context user=VALUE",
		`"calls":["search"]`:                                                                         "--allow-call search",
		`"env":{"LANG":null}`:                                                                        "",
		`"calls":["search"],"env":{"LANG":null}`:                                                     "", // not all of it
		`"calls":["a;b"]`:                                                                            "",
		`"network":[{"host":"$(id)"}]`:                                                               "",
	} {
		assert.Equal(t, want, flagsFor(json.RawMessage(`{"tools":["a"],`+rule+`}`)), rule)
	}
	assert.Equal(t, "--context p=VALUE", flagsFor(json.RawMessage(`{"context":{"p":{"from":"fixed","value":null}}}`)))
	assert.Equal(t, "--context a=VALUE --context b=VALUE", flagsFor(json.RawMessage(`{"context":{"b":{"from":"fixed","value":null},"a":{"from":"fixed","value":null}}}`)))
	assert.Empty(t, flagsFor(json.RawMessage(`{"context":{"p":{"from":"token"}}}`)))
	assert.Empty(t, flagsFor(json.RawMessage(`{"context":{"p":{"from":"fixed","value":"x"}}}`)))
	for _, rule := range []string{``, `null`, `[]`, `{}`, `"--mount /=/"`, `{"tools":["a"]}`, `{"tools":["*"],"calls":["b"]}`, `{"context":{"a b":{"from":"fixed","value":null}}}`} {
		assert.Empty(t, flagsFor(json.RawMessage(rule)), rule)
	}
}

// TestLimitsAreRaisedWhereTheyAre: manifests of Extism have other members, and lack some.
func TestLimitsAreRaisedWhereTheyAre(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plugin.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"wasm": []}`), 0o600))
	assert.Equal(t, "raise memory.max_pages in plugin.json:1", Limits[tool.Memory].Raise(file, "plugin.json:1"))
	assert.Equal(t, "raise limits.output in a manifest of Caisson: those of Extism, such as plugin.json, cannot have it", Limits[tool.Output].Raise(file, "plugin.json"))
	assert.Equal(t, "raise limits.memory in tool.yaml:3", Limits[tool.Memory].Raise("tool.yaml", "tool.yaml:3"))
}
