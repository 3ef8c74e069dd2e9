package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
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
		assert.Equal(t, test.want, remedyOf(test.allow, "").hints("the manifest", "ops.yaml"))
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
		assert.Equal(t, want, remedyOf(tool.Allow{Manifest: json.RawMessage(rule)}, file).manifest, rule)
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

// TestFlagsAreRead: flags that are printed are ones that the command line takes, for what the rule
// is about.
func TestFlagsAreRead(t *testing.T) {
	network := manifests.NetworkPermission{Host: "*.example.com", Ports: []int{80, 8443}, Methods: []string{"POST"}, Schemes: []string{"https", "http"}}
	rule := manifests.Grant{
		Tools: []string{"a"}, Network: []manifests.NetworkGrant{{NetworkPermission: network}}, Calls: []manifests.CallGrant{{Tool: "b"}},
		Secrets: []manifests.SecretGrant{{Name: "K", From: manifests.SecretSource{Env: "K"}, Host: "::1"}},
		Files:   []manifests.FileGrant{{Path: permission.NewGuestPath("/a b"), Access: manifests.AccessReadWrite}},
		Context: manifests.GrantContext("p"),
	}.Rule()
	var o options
	command := &cobra.Command{}
	o.policyFlags(command)
	o.grantFlags(command)
	flags := strings.ReplaceAll(flagsFor(rule), "HOSTDIR", t.TempDir())
	require.NotEmpty(t, flags)
	for _, flag := range strings.Split(flags, "--")[1:] {
		name, value, found := strings.Cut(strings.TrimSpace(flag), " ")
		require.True(t, found, flag)
		require.NoError(t, command.Flags().Set(name, strings.Trim(value, "'")), flag)
	}
	assert.Equal(t, "/a b", o.mounts[0].Path.String())
	assert.Equal(t, manifests.AccessReadWrite, o.mounts[0].Access)
	assert.Equal(t, "b", o.calls[0].Tool)
	assert.Equal(t, "::1", o.secrets[0].Host)
	assert.Equal(t, "p", o.context[0].key)
	given := map[endpoint]bool{}
	for _, g := range o.networks {
		assert.Equal(t, network.Host, g.Host)
		for _, e := range endpointsOf(g.Schemes, g.Ports) {
			given[e] = true
		}
	}
	assert.Equal(t, map[endpoint]bool{{"https", 80}: true, {"https", 8443}: true, {"http", 80}: true, {"http", 8443}: true}, given)
}
