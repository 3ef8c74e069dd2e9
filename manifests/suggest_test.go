package manifests_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// pasteManifest reads what a suggestion asks for.
func pasteManifest(t *testing.T, suggestion string) manifests.Permissions {
	t.Helper()
	require.NotEmpty(t, suggestion)
	require.NotContains(t, suggestion, "\n")
	return parse(t, suggestion+"\n").Permissions
}

// pasteGrant reads what a suggestion grants to the tool.
func pasteGrant(t *testing.T, suggestion, tool string) manifests.Grants {
	t.Helper()
	require.NotEmpty(t, suggestion)
	require.NotContains(t, suggestion, "\n")
	return parsePolicy(t, "grants:\n  "+suggestion+"\n").For(tool, "")
}

func TestSuggestionsForRequests(t *testing.T) {
	for _, c := range []struct {
		permission      manifests.NetworkPermission
		manifest, grant string
	}{
		{
			manifests.NetworkPermission{Host: "api.example.com", Methods: []string{"POST"}},
			"permissions: {network: [{host: api.example.com, methods: [POST]}]}",
			"- {tools: [fetch_page], network: [{host: api.example.com, methods: [POST]}]}",
		},
		{
			manifests.NetworkPermission{Host: "api.example.com", Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/"}},
			"permissions: {network: [{host: api.example.com}]}",
			"- {tools: [fetch_page], network: [{host: api.example.com}]}",
		},
		{
			manifests.NetworkPermission{Host: "*.example.com", Ports: []int{80, 8080}, Methods: []string{"GET", "NO"}, Schemes: []string{"http", "https"}, Paths: []string{"/v1/", "/a-b_c.d~e"}},
			`permissions: {network: [{host: "*.example.com", ports: [80, 8080], methods: [GET, "NO"], schemes: [http, https], paths: [/v1/, "/a-b_c.d~e"]}]}`,
			`- {tools: [fetch_page], network: [{host: "*.example.com", ports: [80, 8080], methods: [GET, "NO"], schemes: [http, https], paths: [/v1/, "/a-b_c.d~e"]}]}`,
		},
		{
			manifests.NetworkPermission{Host: "2001:db8::1"},
			`permissions: {network: [{host: "2001:db8::1"}]}`,
			`- {tools: [fetch_page], network: [{host: "2001:db8::1"}]}`,
		},
		{
			manifests.NetworkPermission{Host: "*"},
			`permissions: {network: [{host: "*"}]}`,
			`- {tools: [fetch_page], network: [{host: "*"}]}`,
		},
	} {
		manifest, grant := manifests.SuggestManifest(c.permission), manifests.SuggestGrant("fetch_page", c.permission)
		assert.Equal(t, c.manifest, manifest)
		assert.Equal(t, c.grant, grant)
		asked := pasteManifest(t, manifest).Network
		require.Len(t, asked, 1)
		assert.Equal(t, c.permission.String(), asked[0].String())
		given := pasteGrant(t, grant, "fetch_page").Network
		require.Len(t, given, 1)
		assert.Equal(t, asked[0], given[0].NetworkPermission)
	}
}

func TestSuggestionsForFiles(t *testing.T) {
	for path, shown := range map[string]string{"/project": "/project", "/a b/ü,@+": `"/a b/ü,@+"`, "/": "/", "/true": "/true"} {
		for access, word := range map[manifests.Access]manifests.Access{"": manifests.Read, manifests.Read: manifests.Read, manifests.ReadWrite: manifests.ReadWrite} {
			manifest := manifests.SuggestFileManifest(path, access)
			assert.Equal(t, "permissions: {files: [{path: "+shown+", access: "+string(word)+"}]}", manifest)
			assert.Equal(t, []manifests.FilePermission{{Path: path, Access: word}}, pasteManifest(t, manifest).Files)
			grant := manifests.SuggestFileGrant("file_read", path, access)
			assert.Equal(t, "- {tools: [file_read], files: [{path: "+shown+", host: HOSTDIR, access: "+string(word)+"}]}", grant)
			given := pasteGrant(t, grant, "file_read").Files
			assert.Equal(t, []manifests.FileGrant{{Binding: given[0].Binding, Path: path, Host: "HOSTDIR", Access: word}}, given)
		}
	}
}

func TestSuggestionsForSecrets(t *testing.T) {
	for _, c := range []struct {
		place manifests.SecretPlace
		shown string
	}{
		{manifests.SecretPlace{Header: "X-Api-Key"}, "header: X-Api-Key"},
		{manifests.SecretPlace{Header: "Authorization", Prefix: "Bearer "}, `header: Authorization, prefix: "Bearer "`},
		{manifests.SecretPlace{Query: "1key"}, `query: "1key"`},
		{manifests.SecretPlace{Body: "null"}, `body: "null"`},
	} {
		p := manifests.SecretPermission{Name: "API_KEY", Place: c.place, Host: "api.example.com"}
		manifest := manifests.SuggestSecretManifest(p)
		assert.Equal(t, "permissions: {secrets: [{name: API_KEY, "+c.shown+", host: api.example.com}]}", manifest)
		assert.Equal(t, []manifests.SecretPermission{p}, pasteManifest(t, manifest).Secrets)
		wanted := manifests.SecretGrant{Name: "API_KEY", From: manifests.SecretSource{Env: "API_KEY"}, Host: "api.example.com"}
		assert.Equal(t, "- {tools: [web_search], secrets: [{name: API_KEY, from: {env: API_KEY}, host: api.example.com}]}", manifests.SuggestSecretGrant("web_search", wanted))
		wanted.Place, wanted.Ports, wanted.Schemes = c.place, []int{8080}, []string{"http"}
		grant := manifests.SuggestSecretGrant("web_search", wanted)
		assert.Equal(t, "- {tools: [web_search], secrets: [{name: API_KEY, from: {env: API_KEY}, host: api.example.com, ports: [8080], schemes: [http], "+c.shown+"}]}", grant)
		given := pasteGrant(t, grant, "web_search").Secrets
		wanted.Binding = given[0].Binding
		assert.Equal(t, []manifests.SecretGrant{wanted}, given)
	}
}

func TestSuggestionsForContextAndEnvironment(t *testing.T) {
	for _, tool := range []string{"a", "true", "No", "12", "1e5", "-", "_a", "y", "a-b_C9", "0x1f", "null"} {
		assert.Equal(t, "project_id", pasteGrant(t, manifests.SuggestContextGrant(tool, "project_id"), tool).Context[0].Name, tool)
		for _, name := range []string{"LANG", "y", "_1", "null", "NaN"} {
			given := pasteGrant(t, manifests.SuggestEnvGrant(tool, name), tool).Env[0]
			assert.Equal(t, name+" VALUE", given.Name+" "+given.Value)
		}
	}
	assert.Equal(t, "- {tools: [file_read], context: [project_id]}", manifests.SuggestContextGrant("file_read", "project_id"))
	assert.Equal(t, "- {tools: [file_read], env: {LANG: VALUE}}", manifests.SuggestEnvGrant("file_read", "LANG"))
}

func TestSuggestionsForCalls(t *testing.T) {
	for _, called := range []string{"web_search", "a-b_C9", "null", "12", "-"} {
		assert.Equal(t, []string{called}, pasteManifest(t, manifests.SuggestCallManifest(called)).Tools)
		given := pasteGrant(t, manifests.SuggestCallGrant("research", called), "research").Calls
		assert.Equal(t, []manifests.CallGrant{{Binding: given[0].Binding, Tool: called}}, given)
	}
	assert.Equal(t, "permissions: {tools: [web_search]}", manifests.SuggestCallManifest("web_search"))
	assert.Equal(t, "- {tools: [research], calls: [web_search]}", manifests.SuggestCallGrant("research", "web_search"))
	for _, called := range []string{"", "*", "web_*", "web search", "a, b", "a]", "é", strings.Repeat("a", 65), "a\nb", "a\u202eb"} {
		assert.Empty(t, manifests.SuggestCallManifest(called), called)
		assert.Empty(t, manifests.SuggestCallGrant("research", called), called)
	}
}

// TestNoSuggestion has what guests might choose so that people paste more than they see.
func TestNoSuggestion(t *testing.T) {
	for _, path := range []string{"", "relative", "/a/../b", "/a\"b", "/a#b", "/{a}", "/[a]", "/a'b", "/$(a)", "/`a`", "/a\nb", "/a\u202eb", "/a\x00", "/a\\b", "/\xff", "/a!b", "/" + strings.Repeat("a", 2000)} {
		assert.Empty(t, manifests.SuggestFileManifest(path, manifests.Read), path)
		assert.Empty(t, manifests.SuggestFileGrant("a", path, manifests.Read), path)
	}
	for name, p := range map[string]manifests.NetworkPermission{
		"no host": {}, "a host with a port": {Host: "a.example:80"}, "a host with YAML": {Host: "a, methods: [POST]"}, "a zone": {Host: "fe80::1%a"}, "not ASCII": {Host: "bücher.example"},
		"a method": {Host: "a", Methods: []string{"get"}}, "a method with YAML": {Host: "a", Methods: []string{"GET]"}}, "a scheme": {Host: "a", Schemes: []string{"ftp"}},
		"a port": {Host: "a", Ports: []int{70000}}, "a negative port": {Host: "a", Ports: []int{-1}}, "a path": {Host: "a", Paths: []string{"/a/../b"}},
		"a quote": {Host: "a", Paths: []string{`/a"`}}, "a brace": {Host: "a", Paths: []string{"/{a}"}}, "a twin": {Host: "a", Methods: []string{"GET", "GET"}},
	} {
		assert.Empty(t, manifests.SuggestManifest(p), name)
		assert.Empty(t, manifests.SuggestGrant("a", p), name)
	}
	secret := manifests.SecretPermission{Name: "A", Host: "a", Place: manifests.SecretPlace{Header: "X-A"}}
	for name, change := range map[string]func(p *manifests.SecretPermission){
		"name": func(p *manifests.SecretPermission) { p.Name = "a" }, "host": func(p *manifests.SecretPermission) { p.Host = "*" },
		"no place": func(p *manifests.SecretPermission) { p.Place.Header = "" }, "prefix": func(p *manifests.SecretPermission) { p.Place.Prefix = `"` },
		"two places": func(p *manifests.SecretPermission) { p.Place.Body = "a" },
	} {
		changed := secret
		change(&changed)
		assert.Empty(t, manifests.SuggestSecretManifest(changed), name)
	}
	for _, tool := range []string{"", "*", "a b", "a]", "[a]", "é", "file_*", strings.Repeat("a", 65)} {
		assert.Empty(t, manifests.SuggestGrant(tool, manifests.NetworkPermission{Host: "a"}), tool)
		assert.Empty(t, manifests.SuggestFileGrant(tool, "/a", manifests.Read), tool)
		assert.Empty(t, manifests.SuggestSecretGrant(tool, manifests.SecretGrant{Name: "A", From: manifests.SecretSource{Env: "A"}, Host: "a"}), tool)
		assert.Empty(t, manifests.SuggestContextGrant(tool, "a"), tool)
		assert.Empty(t, manifests.SuggestEnvGrant(tool, "A"), tool)
		assert.Empty(t, manifests.SuggestCallGrant(tool, "a"), tool)
	}
	assert.Empty(t, manifests.SuggestContextGrant("a", "a-b"))
	assert.Empty(t, manifests.SuggestEnvGrant("a", "A B"))
	assert.Empty(t, manifests.SuggestFileGrant("a", "/a", "write"))
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

func BenchmarkSuggestGrant(b *testing.B) {
	p := manifests.NetworkPermission{Host: "api.example.com", Ports: []int{8443}, Methods: []string{"POST"}}
	for b.Loop() {
		manifests.SuggestGrant("fetch_page", p)
	}
}
