package unapplied_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
)

func near(string) []string { return []string{"reader"} }

func reader(t *testing.T) []*manifests.Manifest {
	t.Helper()
	m, err := manifests.Parse("reader/tool.yaml", []byte(`schema: caisson/v1
name: reader
description: Reads.
module: {path: reader.wasm}
permissions: {files: [{path: /project, access: read}]}
`))
	require.NoError(t, err)
	return []*manifests.Manifest{m}
}

// TestPoliciesComeOneAfterTheOther: each policy is checked, and its findings have its own keys.
func TestPoliciesComeOneAfterTheOther(t *testing.T) {
	file, err := manifests.ParsePolicy("caisson.yaml", []byte(`schema: caisson-config/v1
grants:
  - {tools: [raeder], files: [{path: /project, host: .}]}
  - {tools: [reader], files: [{path: /project, host: .}]}
deny: [{tools: [reader], env: LANG}]
`))
	require.NoError(t, err)
	program := &manifests.Policy{
		Grants: []manifests.Grant{{Tools: []string{"*"}, Grants: manifests.Grants{Files: []manifests.FileGrant{{Binding: manifests.Binding{Origin: "main.go"}, Path: permission.NewGuestPath("/other"), Host: permission.NewHostTemplate(".")}}}}},
		Ask:    []manifests.PolicyAsk{{Origin: "main.go", Tool: "writer"}}, RecordInputs: []manifests.PolicyAsk{{Origin: "main.go", Tool: "re*"}, {Origin: "main.go", Tool: "writer"}},
	}
	assert.Equal(t, []unapplied.Finding{
		{"grants[0].tools[0]", "caisson.yaml:3", `there is no tool "raeder" here`, "did you mean reader?"},
		{"deny[0]", "caisson.yaml:5", "it has no effect, because none of its tools asks for the variable LANG", "write a name that a manifest asks for, or remove it"},
		{"grants[0].files[0]", "main.go", "no tool that it applies to asks for the directory /other", "write a guest path that a manifest asks for, or remove it"},
		{"ask[0]", "main.go", `there is no tool "writer" here`, "did you mean reader?"},
		{"record_inputs[1]", "main.go", `there is no tool "writer" here`, "did you mean reader?"},
	}, unapplied.In([]*manifests.Policy{file, program}, manifests.Profile{}, reader(t), near))
	assert.Empty(t, unapplied.In([]*manifests.Policy{file, program}, manifests.Profile{}, nil, near), "without tools there is nothing to compare with")
}

// TestGrantsThatGiveNothing: whatever tools there are, such a grant is one that was not finished.
func TestGrantsThatGiveNothing(t *testing.T) {
	file, err := manifests.ParsePolicy("caisson.yaml", []byte(`schema: caisson-config/v1
grants:
  - {tools: [reader]}
  - {tools: [raeder], source: ./tools, files: [], network: []}
  - {tools: [reader], files: [{path: /project, host: .}]}
`))
	require.NoError(t, err)
	const text, fix = "the grant gives nothing", "add what its tools should get, such as files or network, or remove the grant"
	want := []unapplied.Finding{{"grants[0]", "caisson.yaml:3", text, fix}, {"grants[1]", "caisson.yaml:4", text, fix}}
	assert.Equal(t, want, unapplied.In([]*manifests.Policy{file}, manifests.Profile{}, reader(t), near))
	assert.Equal(t, want, unapplied.In([]*manifests.Policy{file}, manifests.Profile{}, nil, near))
}

// TestGrantsThatReachNothing: a grant for a host of a tool may have none of its requests, and a folder may be
// named by a value that the tool does not have.
func TestGrantsThatReachNothing(t *testing.T) {
	m, err := manifests.Parse("fetch/tool.yaml", []byte(`schema: caisson/v1
name: fetch
description: Fetches.
module: {path: fetch.wasm}
context: [user, project_id]
permissions:
  files: [{path: /project}, {path: /home}]
  network: [{host: "*.example.com", paths: [/v1]}, {host: api.example.org, ports: "*", methods: [GET, POST]}]
`))
	require.NoError(t, err)
	for element, want := range map[string]string{
		"network: [{host: api.example.com, methods: [POST]}]":                     "it gives nothing, because no tool that it applies to asks for requests such as POST https://api.example.com",
		"network: [{host: api.example.com, schemes: [http]}]":                     "it gives nothing, because no tool that it applies to asks for requests such as GET http://api.example.com",
		"network: [{host: api.example.com, ports: [8443]}]":                       "it gives nothing, because no tool that it applies to asks for requests such as GET https://api.example.com:8443",
		"network: [{host: api.example.com, paths: [/v2]}]":                        "it gives nothing, because no tool that it applies to asks for requests such as GET https://api.example.com/v2",
		"network: [{host: api.example.com, paths: [/v1/a]}]":                      "",
		"network: [{host: '*', methods: [POST]}]":                                 "",
		"network: [{host: api.example.org, ports: [8443], methods: [POST, PUT]}]": "",
		"files: [{path: /project, host: './work/{project_id}'}]":                  "",
		"files: [{path: /project, host: './work/{user}/{projectid}'}]":            "no tool that it applies to has the context value projectid, which the folder work/{user}/{projectid} needs; their calls are denied",
	} {
		file, err := manifests.ParsePolicy("caisson.yaml", []byte("schema: caisson-config/v1\ngrants: [{tools: [fetch], "+element+"}]\n"))
		require.NoError(t, err)
		found := unapplied.In([]*manifests.Policy{file}, manifests.Profile{}, []*manifests.Manifest{m}, near)
		if want == "" {
			assert.Empty(t, found, element)
			continue
		}
		require.Len(t, found, 1, element)
		assert.Equal(t, [2]string{want, "caisson.yaml:2"}, [2]string{found[0].Text, found[0].Origin})
		assert.Contains(t, []string{"grant methods, schemes, ports and paths that its manifest requests; caisson inspect fetch shows them",
			"write one that a manifest has under context, such as {project_id} or {user}"}, found[0].Fix)
	}
}

// TestSecretsThatAreNeverSent: a secret is bound to an origin that no network grant of its tool reaches, in any policy.
func TestSecretsThatAreNeverSent(t *testing.T) {
	m, err := manifests.Parse("search/tool.yaml", []byte(`schema: caisson/v1
name: search
description: Searches.
module: {path: search.wasm}
permissions:
  secrets: [{name: KEY, header: X-Key, host: api.example.com}]
  network: [{host: "*.example.com", schemes: [http, https], ports: [80, 443, 8443]}]
`))
	require.NoError(t, err)
	bound := &manifests.Policy{Grants: []manifests.Grant{{
		Binding: manifests.Binding{Origin: "main.go"}, Tools: []string{"search"},
		Grants: manifests.Grants{Secrets: []manifests.SecretGrant{{Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{Env: "KEY"}}}},
	}}}
	for name, c := range map[string]struct {
		granted []manifests.NetworkPermission
		reached bool
	}{
		"nothing":             {},
		"another host":        {granted: []manifests.NetworkPermission{{Host: "www.example.com"}}},
		"another port":        {granted: []manifests.NetworkPermission{{Host: "api.example.com", Ports: []int{8443}}}},
		"another scheme":      {granted: []manifests.NetworkPermission{{Host: "api.example.com", Schemes: []string{"http"}}}},
		"the origin":          {granted: []manifests.NetworkPermission{{Host: "api.example.com"}}, reached: true},
		"one among others":    {granted: []manifests.NetworkPermission{{Host: "www.example.com"}, {Host: "*.example.com", Ports: []int{8443, 443}}}, reached: true},
		"every host, by name": {granted: []manifests.NetworkPermission{{Host: "*"}}, reached: true},
	} {
		network := &manifests.Policy{Grants: []manifests.Grant{{Binding: manifests.Binding{Origin: "other.yaml:3"}, Tools: []string{"*"}}}}
		for _, granted := range c.granted {
			network.Grants[0].Network = append(network.Grants[0].Network, manifests.NetworkGrant{NetworkPermission: granted})
		}
		found := unapplied.In([]*manifests.Policy{bound, network}, manifests.Profile{}, []*manifests.Manifest{m}, near)
		found = slices.DeleteFunc(found, func(f unapplied.Finding) bool { return f.Origin != "main.go" })
		if c.reached {
			assert.Empty(t, found, name)
			continue
		}
		assert.Equal(t, []unapplied.Finding{{
			"grants[0].secrets[0]", "main.go", "the secret KEY is never sent: no network grant lets search reach https://api.example.com:443",
			"add to grants: {tools: [search], network: [{host: api.example.com}]}, or correct the secret's host",
		}}, found, name)
	}
}

// TestSecretsThatNothingEffectiveSends: the network is granted at the origin of a secret, but nothing of
// it is left for the tool.
func TestSecretsThatNothingEffectiveSends(t *testing.T) {
	m, err := manifests.Parse("search/tool.yaml", []byte(`schema: caisson/v1
name: search
description: Searches.
module: {path: search.wasm}
permissions:
  secrets: [{name: KEY, header: X-Key, host: api.example.com}]
  network: [{host: api.example.com, methods: [POST], paths: [/search]}]
`))
	require.NoError(t, err)
	const network, secret = "network: [{host: api.example.com, methods: [POST]}]", "secrets: [{name: KEY, from: {env: KEY}, host: api.example.com}]"
	for name, c := range map[string]struct{ policy, reason string }{
		"all of it":       {"grants: [{tools: [search], " + network + ", " + secret + "}]", ""},
		"some of it":      {"grants: [{tools: [search], " + network + ", " + secret + "}]\ndeny: [{network: {host: api.example.com, paths: [/search/private]}}]", ""},
		"another address": {"grants: [{tools: [search], " + network + ", " + secret + "}]\ndeny: [{network: {addresses: [10.0.0.0/8]}}]", ""},
		"a denial":        {"grants: [{tools: [search], " + network + ", " + secret + "}]\ndeny: [{network: {host: '*.example.com'}}]", "policy.yaml:3 denies search every request to https://api.example.com:443"},
		"a denied method": {"grants: [{tools: [search], " + network + ", " + secret + "}]\ndeny: [{tools: [search], network: {methods: [POST]}}]", "policy.yaml:3 denies search every request to https://api.example.com:443"},
		"two denials": {"grants: [{tools: [search], " + network + ", " + secret + "}]\ndeny: [{network: {host: api.example.com}}, {network: {host: '*.example.com'}}]",
			"denials take every request to https://api.example.com:443 from search"},
		"methods": {"grants: [{tools: [search], network: [{host: api.example.com, methods: [GET]}], " + secret + "}]", "no grant at https://api.example.com:443 has a method and path that search asks for"},
		"paths": {"grants: [{tools: [search], network: [{host: api.example.com, methods: [POST], paths: [/foo]}], " + secret + "}]",
			"no grant at https://api.example.com:443 has a method and path that search asks for"},
		"the profile": {"profile: strict\ngrants: [{tools: [search], " + network + ", " + secret + "}]", "the profile strict allows no network"},
		"the manifest": {"grants: [{tools: [search], network: [{host: api.example.com, ports: [8443], methods: [POST]}], secrets: [{name: KEY, from: {env: KEY}, host: api.example.com, ports: [8443]}]}]",
			"the manifest of search asks for no request to https://api.example.com:8443"},
		"nothing": {"grants: [{tools: [search], " + secret + "}]", "no network grant lets search reach https://api.example.com:443"},
	} {
		policy, err := manifests.ParsePolicy("policy.yaml", []byte("schema: caisson-config/v1\n"+c.policy))
		require.NoError(t, err, name)
		profile, err := policy.ProfileNamed("")
		require.NoError(t, err, name)
		var reasons []string
		for _, f := range unapplied.In([]*manifests.Policy{policy}, profile, []*manifests.Manifest{m}, near) {
			if f.Key == "grants[0].secrets[0]" {
				assert.NotEmpty(t, f.Fix)
				reasons = append(reasons, f.Text)
			}
		}
		if c.reason == "" {
			assert.Empty(t, reasons, name)
			continue
		}
		assert.Equal(t, []string{"the secret KEY is never sent: " + c.reason}, reasons, name)
	}
}

// TestRedactionsOfNothing: a pointer that leads to no parameter leaves in records what should not be there.
func TestRedactionsOfNothing(t *testing.T) {
	m, err := manifests.Parse("pay/tool.yaml", []byte(`schema: caisson/v1
name: pay
description: Pays.
module: {path: pay.wasm}
parameters: {type: object, properties: {card: {type: string}, to: {type: object, properties: {iban: {type: string}}}}}
`))
	require.NoError(t, err)
	policy, err := manifests.ParsePolicy("caisson.yaml", []byte(`schema: caisson-config/v1
redact:
  - {tools: [pay, reader], arguments: [/card, /to/iban, /to/bic, /crad], result: [/anything]}
  - {tools: [buy], arguments: [/card]}
`))
	require.NoError(t, err)
	const fix = "write a JSON Pointer to a parameter; caisson inspect pay shows them"
	assert.Equal(t, []unapplied.Finding{
		{"redact[0].tools[1]", "caisson.yaml:3", `there is no tool "reader" here`, "did you mean reader?"},
		{"redact[0].arguments[2]", "caisson.yaml:3", "none of its tools has a parameter at /to/bic", fix},
		{"redact[0].arguments[3]", "caisson.yaml:3", "none of its tools has a parameter at /crad", fix},
		{"redact[1].tools[0]", "caisson.yaml:4", `there is no tool "buy" here`, "did you mean reader?"},
	}, unapplied.In([]*manifests.Policy{policy}, manifests.Profile{}, []*manifests.Manifest{m}, near))
}
