package manifests_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

// pasteManifest reads what a rule asks for, as JSON and as a line of YAML.
func pasteManifest(t *testing.T, rule json.RawMessage) manifests.Permissions {
	t.Helper()
	line := manifests.ManifestLine(rule)
	require.NotEmpty(t, line, "%s", rule)
	require.NotContains(t, line, "\n")
	asked := parse(t, line+"\n").Permissions
	if !strings.Contains(string(rule), "null") {
		require.Equal(t, asked, parse(t, `permissions: `+string(rule)+"\n").Permissions)
	}
	return asked
}

// pasteGrant reads what a rule grants to the tool.
func pasteGrant(t *testing.T, rule json.RawMessage, tool string) manifests.Grants {
	t.Helper()
	line := manifests.PolicyLine(rule)
	require.NotEmpty(t, line, "%s", rule)
	require.NotContains(t, line, "\n")
	given := parsePolicy(t, "grants:\n  "+line+"\n").For(tool, "")
	if !strings.Contains(string(rule), "null,") && !strings.Contains(string(rule), ":null") {
		require.Equal(t, given, parsePolicy(t, "grants:\n  - "+string(rule)+"\n").For(tool, ""))
	}
	return given
}

func requestRule(p manifests.NetworkPermission) json.RawMessage {
	return manifests.Permissions{Network: []manifests.NetworkPermission{p}}.Rule()
}

func requestGrant(tool string, p manifests.NetworkPermission) json.RawMessage {
	return manifests.Grants{Network: []manifests.NetworkGrant{{NetworkPermission: p}}}.Rule(tool)
}

func fileRule(path string, access manifests.Access) json.RawMessage {
	return manifests.Permissions{Files: []manifests.FilePermission{{Path: permission.NewGuestPath(path), Access: access}}}.Rule()
}

func fileGrant(tool, path string, access manifests.Access) json.RawMessage {
	return manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory(path, "/srv/never-shown", access)}}.Rule(tool)
}

func secretRule(p manifests.SecretPermission) json.RawMessage {
	return manifests.Permissions{Secrets: []manifests.SecretPermission{p}}.Rule()
}

func secretGrant(tool string, g manifests.SecretGrant) json.RawMessage {
	return manifests.Grants{Secrets: []manifests.SecretGrant{g}}.Rule(tool)
}

func contextGrant(tool, name string) json.RawMessage {
	return manifests.Grants{Context: manifests.GrantContext(name)}.Rule(tool)
}

func variableGrant(tool, name string) json.RawMessage {
	return manifests.Grants{Env: []manifests.EnvGrant{{Name: name, Value: "never-shown"}}}.Rule(tool)
}

func callRule(called string) json.RawMessage {
	return manifests.Permissions{Tools: []string{called}}.Rule()
}

func callGrant(tool, called string) json.RawMessage {
	return manifests.Grants{Calls: []manifests.NameGrant{{Name: called}}}.Rule(tool)
}

func TestRulesForRequests(t *testing.T) {
	for _, c := range []struct {
		permission     manifests.NetworkPermission
		rule, manifest string
	}{
		{
			manifests.NetworkPermission{Host: "api.example.com", Methods: []string{"POST"}},
			`{"host":"api.example.com","methods":["POST"]}`,
			"{host: api.example.com, methods: [POST]}",
		},
		{
			manifests.NetworkPermission{Host: "api.example.com", Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/"}},
			`{"host":"api.example.com"}`,
			"{host: api.example.com}",
		},
		{
			manifests.NetworkPermission{Host: "*.example.com", Ports: []int{80, 8080}, Methods: []string{"GET", "NO"}, Schemes: []string{"http", "https"}, Paths: []string{"/v1/", "/a-b_c.d~e"}},
			`{"host":"*.example.com","ports":[80,8080],"methods":["GET","NO"],"schemes":["http","https"],"paths":["/v1/","/a-b_c.d~e"]}`,
			`{host: "*.example.com", ports: [80, 8080], methods: [GET, "NO"], schemes: [http, https], paths: [/v1/, "/a-b_c.d~e"]}`,
		},
		{manifests.NetworkPermission{Host: "2001:db8::1"}, `{"host":"2001:db8::1"}`, `{host: "2001:db8::1"}`},
		{manifests.NetworkPermission{Host: "*"}, `{"host":"*"}`, `{host: "*"}`},
	} {
		manifest, grant := requestRule(c.permission), requestGrant("fetch_page", c.permission)
		assert.Equal(t, `{"network":[`+c.rule+`]}`, string(manifest))
		assert.Equal(t, `{"tools":["fetch_page"],"network":[`+c.rule+`]}`, string(grant))
		assert.Equal(t, "permissions: {network: ["+c.manifest+"]}", manifests.ManifestLine(manifest))
		assert.Equal(t, "- {tools: [fetch_page], network: ["+c.manifest+"]}", manifests.PolicyLine(grant))
		asked := pasteManifest(t, manifest).Network
		require.Len(t, asked, 1)
		assert.Equal(t, c.permission.String(), asked[0].String())
		given := pasteGrant(t, grant, "fetch_page").Network
		require.Len(t, given, 1)
		assert.Equal(t, asked[0], given[0].NetworkPermission)
	}
	own := manifests.Grants{Network: []manifests.NetworkGrant{{
		NetworkPermission: manifests.NetworkPermission{Host: "db.example.com"}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Connect: "127.0.0.1:1", Authorities: "/srv/never-shown",
	}}}.Rule("a")
	assert.Equal(t, `{"tools":["a"],"network":[{"host":"db.example.com","addresses":["10.0.0.0/8"]}]}`, string(own))
	assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, pasteGrant(t, own, "a").Network[0].Addresses)
}

func TestRulesForFiles(t *testing.T) {
	for path, shown := range map[string]string{"/project": "/project", "/a b/ü,@+": `"/a b/ü,@+"`, "/": "/", "/true": "/true"} {
		for access, word := range map[manifests.Access]manifests.Access{"": manifests.AccessRead, manifests.AccessRead: manifests.AccessRead, manifests.AccessReadWrite: manifests.AccessReadWrite} {
			manifest := fileRule(path, access)
			assert.Equal(t, `{"files":[{"path":"`+path+`","access":"`+string(word)+`"}]}`, string(manifest))
			assert.Equal(t, "permissions: {files: [{path: "+shown+", access: "+string(word)+"}]}", manifests.ManifestLine(manifest))
			assert.Equal(t, []manifests.FilePermission{{Path: permission.NewGuestPath(path), Access: word}}, pasteManifest(t, manifest).Files)
			grant := fileGrant("file_read", path, access)
			assert.Equal(t, `{"tools":["file_read"],"files":[{"path":"`+path+`","host":null,"access":"`+string(word)+`"}]}`, string(grant))
			assert.Equal(t, "- {tools: [file_read], files: [{path: "+shown+", host: HOSTDIR, access: "+string(word)+"}]}", manifests.PolicyLine(grant))
			given := pasteGrant(t, grant, "file_read").Files
			assert.Equal(t, []manifests.FileGrant{{Binding: given[0].Binding, Path: permission.NewGuestPath(path), Host: permission.NewHostTemplate("HOSTDIR"), Access: word}}, given)
		}
	}
}

func TestRulesForSecrets(t *testing.T) {
	for _, c := range []struct {
		place       manifests.SecretPlace
		rule, shown string
	}{
		{manifests.SecretPlace{Header: "X-Api-Key"}, `"header":"X-Api-Key"`, "header: X-Api-Key"},
		{manifests.SecretPlace{Header: "Authorization", Prefix: "Bearer "}, `"header":"Authorization","prefix":"Bearer "`, `header: Authorization, prefix: "Bearer "`},
		{manifests.SecretPlace{Query: "1key"}, `"query":"1key"`, `query: "1key"`},
		{manifests.SecretPlace{Body: "null"}, `"body":"null"`, `body: "null"`},
	} {
		p := manifests.SecretPermission{Name: "API_KEY", Place: c.place, Host: "api.example.com"}
		manifest := secretRule(p)
		assert.Equal(t, `{"secrets":[{"name":"API_KEY",`+c.rule+`,"host":"api.example.com"}]}`, string(manifest))
		assert.Equal(t, "permissions: {secrets: [{name: API_KEY, "+c.shown+", host: api.example.com}]}", manifests.ManifestLine(manifest))
		assert.Equal(t, []manifests.SecretPermission{p}, parse(t, manifests.ManifestLine(manifest)+"\n").Permissions.Secrets)
		wanted := manifests.SecretGrant{Name: "API_KEY", From: manifests.SecretSource{Env: "API_KEY"}, Host: "api.example.com"}
		assert.Equal(t, "- {tools: [web_search], secrets: [{name: API_KEY, from: {env: API_KEY}, host: api.example.com}]}", manifests.PolicyLine(secretGrant("web_search", wanted)))
		wanted.Place, wanted.Ports, wanted.Schemes = c.place, []int{8080}, []string{"http"}
		grant := secretGrant("web_search", wanted)
		assert.Equal(t, `{"tools":["web_search"],"secrets":[{"name":"API_KEY","from":{"env":"API_KEY"},"host":"api.example.com","ports":[8080],"schemes":["http"],`+c.rule+`}]}`, string(grant))
		given := pasteGrant(t, grant, "web_search").Secrets
		wanted.Binding = given[0].Binding
		assert.Equal(t, []manifests.SecretGrant{wanted}, given)
	}

	// Where it goes is the author's to say, and to which host the operator's.
	manifest := secretRule(manifests.SecretPermission{Name: "ON"})
	assert.Equal(t, `{"secrets":[{"name":"ON","header":null,"host":null}]}`, string(manifest))
	assert.Equal(t, `permissions: {secrets: [{name: "ON", header: HEADER, host: HOST}]}`, manifests.ManifestLine(manifest))
	grant := secretGrant("a", manifests.SecretGrant{Name: "ON", From: manifests.SecretSource{Env: "ON"}})
	assert.Equal(t, `{"tools":["a"],"secrets":[{"name":"ON","from":{"env":"ON"},"host":null}]}`, string(grant))
	assert.Equal(t, `- {tools: [a], secrets: [{name: "ON", from: {env: "ON"}, host: HOST}]}`, manifests.PolicyLine(grant))
	for _, from := range []manifests.SecretSource{{}, {File: "/srv/never-shown"}, {Age: "/srv/never-shown", Identity: "/srv/never-shown"}} {
		assert.Nil(t, secretGrant("a", manifests.SecretGrant{Name: "ON", From: from, Host: "a.example"}))
	}
}

func TestRulesForContextAndEnvironment(t *testing.T) {
	for _, tool := range []string{"a", "true", "No", "12", "1e5", "-", "_a", "y", "a-b_C9", "0x1f", "null"} {
		assert.Equal(t, "project_id", pasteGrant(t, contextGrant(tool, "project_id"), tool).Context[0].Name, tool)
		for _, name := range []string{"LANG", "y", "_1", "null", "NaN"} {
			given := pasteGrant(t, variableGrant(tool, name), tool).Env[0]
			assert.Equal(t, name+" VALUE", given.Name+" "+given.Value)
		}
	}
	assert.Equal(t, `{"tools":["file_read"],"context":["project_id"]}`, string(contextGrant("file_read", "project_id")))
	assert.Equal(t, "- {tools: [file_read], context: [project_id]}", manifests.PolicyLine(contextGrant("file_read", "project_id")))
	assert.Equal(t, `{"tools":["file_read"],"env":{"LANG":null}}`, string(variableGrant("file_read", "LANG")))
	assert.Equal(t, "- {tools: [file_read], env: {LANG: VALUE}}", manifests.PolicyLine(variableGrant("file_read", "LANG")))
	assert.Equal(t, []string{"LANG"}, pasteManifest(t, manifests.Permissions{Env: []string{"LANG"}}.Rule()).Env)

	asked := manifests.ContextRule("project_id", "user")
	assert.Equal(t, `{"context":["project_id","user"]}`, string(asked))
	assert.Equal(t, "context: [project_id, user]", manifests.ManifestLine(asked))
	fixed := manifests.ContextSource{Name: "project_id", From: manifests.FromFixed, Value: "never-shown"}.Rule()
	assert.Equal(t, `{"context":{"project_id":{"from":"fixed","value":null}}}`, string(fixed))
	assert.Equal(t, "context: {project_id: {from: fixed, value: VALUE}}", manifests.PolicyLine(fixed))
	flag := manifests.ContextSource{Name: "null", From: manifests.FromFlag}.Rule()
	assert.Equal(t, `context: {"null": {from: flag}}`, manifests.PolicyLine(flag))
	for _, name := range []string{"", "a b", "a-b", "a: b", "é", "a\nb"} {
		assert.Nil(t, manifests.ContextRule(name), name)
		assert.Nil(t, manifests.ContextSource{Name: name, From: manifests.FromFixed}.Rule(), name)
	}
	assert.Nil(t, manifests.ContextRule("a", "A"))
	assert.Nil(t, manifests.ContextRule())
	assert.Nil(t, manifests.ContextSource{Name: "a"}.Rule())
}

func TestRulesForCalls(t *testing.T) {
	for _, called := range []string{"web_search", "a-b_C9", "null", "12", "-"} {
		assert.Equal(t, []string{called}, pasteManifest(t, callRule(called)).Tools)
		given := pasteGrant(t, callGrant("research", called), "research").Calls
		assert.Equal(t, []manifests.NameGrant{{Binding: given[0].Binding, Name: called}}, given)
	}
	assert.Equal(t, `{"tools":["web_search"]}`, string(callRule("web_search")))
	assert.Equal(t, `{"tools":["research"],"calls":["web_search"]}`, string(callGrant("research", "web_search")))
	for _, called := range []string{"", "*", "web_*", "web search", "a, b", "a]", "é", strings.Repeat("a", 65), "a\nb", "a\u202eb"} {
		assert.Nil(t, callRule(called), called)
		assert.Nil(t, callGrant("research", called), called)
	}
}

// TestNoRule has what guests might choose so that people paste more than they see.
func TestNoRule(t *testing.T) {
	assert.Nil(t, manifests.Permissions{}.Rule())
	assert.Nil(t, manifests.Grants{}.Rule())
	assert.Nil(t, manifests.Grants{}.Rule("a"), "it gives nothing")
	for _, path := range []string{"", "relative", "/a/../b", "/a\"b", "/a#b", "/{a}", "/[a]", "/a'b", "/$(a)", "/`a`", "/a\nb", "/a\u202eb", "/a\x00", "/a\\b", "/\xff", "/a!b", "/" + strings.Repeat("a", 2000)} {
		assert.Nil(t, fileRule(path, manifests.AccessRead), path)
		assert.Nil(t, fileGrant("a", path, manifests.AccessRead), path)
	}
	for name, p := range map[string]manifests.NetworkPermission{
		"no host": {}, "a host with a port": {Host: "a.example:80"}, "a host with YAML": {Host: "a, methods: [POST]"}, "a zone": {Host: "fe80::1%a"}, "not ASCII": {Host: "bücher.example"},
		"a method": {Host: "a", Methods: []string{"get"}}, "a method with YAML": {Host: "a", Methods: []string{"GET]"}}, "a scheme": {Host: "a", Schemes: []string{"ftp"}},
		"a port": {Host: "a", Ports: []int{70000}}, "a negative port": {Host: "a", Ports: []int{-2}}, "a path": {Host: "a", Paths: []string{"/a/../b"}},
		"a quote": {Host: "a", Paths: []string{`/a"`}}, "a brace": {Host: "a", Paths: []string{"/{a}"}}, "a twin": {Host: "a", Methods: []string{"GET", "GET"}},
	} {
		assert.Nil(t, requestRule(p), name)
		assert.Nil(t, requestGrant("a", p), name)
	}
	every := manifests.NetworkPermission{Host: "a", Ports: []int{manifests.EveryPort}}
	assert.Contains(t, string(requestRule(every)), `"ports":"*"`)
	assert.Nil(t, requestGrant("a", every), "a grant names its ports")
	secret := manifests.SecretPermission{Name: "A", Host: "a", Place: manifests.SecretPlace{Header: "X-A"}}
	for name, change := range map[string]func(p *manifests.SecretPermission){
		"name": func(p *manifests.SecretPermission) { p.Name = "a" }, "host": func(p *manifests.SecretPermission) { p.Host = "*" },
		"prefix alone": func(p *manifests.SecretPermission) { p.Place = manifests.SecretPlace{Prefix: "a"} }, "prefix": func(p *manifests.SecretPermission) { p.Place.Prefix = `"` },
		"two places": func(p *manifests.SecretPermission) { p.Place.Body = "a" },
	} {
		changed := secret
		change(&changed)
		assert.Nil(t, secretRule(changed), name)
	}
	for _, tool := range []string{"", "*", "a b", "a]", "[a]", "é", "file_*", strings.Repeat("a", 65)} {
		assert.Nil(t, requestGrant(tool, manifests.NetworkPermission{Host: "a"}), tool)
		assert.Nil(t, fileGrant(tool, "/a", manifests.AccessRead), tool)
		assert.Nil(t, secretGrant(tool, manifests.SecretGrant{Name: "A", From: manifests.SecretSource{Env: "A"}, Host: "a"}), tool)
		assert.Nil(t, contextGrant(tool, "a"), tool)
		assert.Nil(t, variableGrant(tool, "A"), tool)
		assert.Nil(t, callGrant(tool, "a"), tool)
	}
	assert.Nil(t, contextGrant("a", "a-b"))
	assert.Nil(t, variableGrant("a", "A B"))
	assert.Nil(t, fileGrant("a", "/a", "write"))
}

// FuzzRuleLine: text that is not a rule has no line, and the reader accepts each line.
func FuzzRuleLine(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `"permissions: {}"`, `{"network":[{"host":"a"}]}`, `{"network":[{"host":"a","host":"b"}]}`, `{"context":["a"]}`, `{"context":["a"],"env":["A"]}`,
		`{"tools":["a"],"calls":["b"]}`, `{"tools":["*"],"calls":["b"]}`, `{"tools":["a"],"files":[{"path":"/a","host":null}]}`, `{"tools":["a"],"files":[{"path":"/a","host":"a\nb"}]}`,
		`{"context":{"a":{"from":"fixed","value":null}}}`, `{"context":null}`, `{"env":null}`, `{"tools":["a"],"env":{"A":null}}`, `{"files":[{"path":"/\u202e"}]}`, `{"tools":["a"],"network":[{"host":null}]}`,
		`{"kv":{"bytes":"1MiB"}}`, `{"llm":{"tokens":1e3}}`, strings.Repeat(`{"a":`, 200) + strings.Repeat(`}`, 200),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rule string) {
		if line := manifests.ManifestLine(json.RawMessage(rule)); line != "" {
			require.NotContains(t, line, "\n")
			parse(t, line+"\n")
		}
		if line := manifests.PolicyLine(json.RawMessage(rule)); line != "" {
			require.NotContains(t, line, "\n")
			if strings.HasPrefix(line, "- ") {
				line = "grants:\n  " + line
			}
			parsePolicy(t, line+"\n")
		}
	})
}

func TestNetworkPermissionAsText(t *testing.T) {
	for want, p := range map[string]manifests.NetworkPermission{
		"GET https://*.example.com:443/v1":             {Host: "*.example.com", Ports: []int{443}, Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/v1"}},
		"GET https://*":                                {Host: "*"},
		"GET https://[2001:db8::1]:8443":               {Host: "2001:db8::1", Ports: []int{8443}, Paths: []string{"/"}},
		"GET,POST https,http://a.example:80,443/,/v1/": {Host: "a.example", Ports: []int{80, 443}, Methods: []string{"GET", "POST"}, Schemes: []string{"https", "http"}, Paths: []string{"/", "/v1/"}},
	} {
		assert.Equal(t, want, p.String())
	}
}

func BenchmarkRule(b *testing.B) {
	p := manifests.NetworkPermission{Host: "api.example.com", Ports: []int{8443}, Methods: []string{"POST"}}
	for b.Loop() {
		requestGrant("fetch_page", p)
	}
}
