package manifests_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

const policyHead = "schema: caisson-config/v1\n"

func parsePolicy(t *testing.T, body string) *manifests.Policy {
	t.Helper()
	p, err := manifests.ParsePolicy("caisson.yaml", []byte(policyHead+body))
	require.NoError(t, err, body)
	return p
}

func policyProblems(t *testing.T, body string) []manifests.Problem {
	t.Helper()
	p, err := manifests.ParsePolicy("caisson.yaml", []byte(policyHead+body))
	var invalid *manifests.Error
	require.ErrorAs(t, err, &invalid, body)
	require.ErrorIs(t, err, manifests.ErrInvalid)
	require.Nil(t, p)
	return invalid.Problems
}

const fullPolicy = "testdata/policy/valid/full.yaml"

func loadPolicy(t *testing.T) *manifests.Policy {
	t.Helper()
	p := must(manifests.LoadPolicy(fullPolicy))
	return p
}

// host writes a path as this system does.
func host(path string) string { return filepath.FromSlash(path) }

// at returns the binding of something in the full policy.
func at(line string) manifests.Binding { return manifests.Binding{Origin: "full.yaml:" + line} }

func TestLoadPolicyReadsWhatBoundsAllTools(t *testing.T) {
	p := loadPolicy(t)
	assert.Equal(t, fullPolicy, p.File)
	assert.Equal(t, []string{host("testdata/policy/valid/wasm-tools"), host("testdata/policy/third-party/tool.yaml"), host("/srv/tools")}, p.Tools)
	assert.Equal(t, "careful", p.Profile)
	careful := manifests.Limits{
		Memory: 24 << 20, Timeout: 8 * time.Second, Fuel: 1_000_000, Output: 1 << 20, Stderr: 64 << 10,
		HTTPCalls: 5, HTTPBytes: 1 << 20, OpenFiles: 8, DiskBytes: 2 << 20,
	}
	cautious := careful
	cautious.Memory = 16 << 20
	assert.Equal(t, []manifests.Profile{
		{Name: "cautious", Limits: cautious},
		{Name: "careful", Limits: careful, NoWrites: true},
		{Name: "offline", Limits: manifests.Limits{Memory: 128 << 20, Timeout: 10 * time.Second}, NoNetwork: true},
	}, p.Profiles)
	assert.Equal(t, []manifests.ContextSource{
		{Origin: "full.yaml:16", Name: "project_id", From: manifests.FromToken},
		{Origin: "full.yaml:17", Name: "user", From: manifests.FromSession},
		{Origin: "full.yaml:18", Name: "locale", From: manifests.FromFlag},
		{Origin: "full.yaml:19", Name: "tenant", From: manifests.FromFixed, Value: "demo"},
	}, p.Context)
}

func TestLoadPolicyReadsGrants(t *testing.T) {
	p := loadPolicy(t)
	require.Len(t, p.Grants, 3)
	pin := "9f2c0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7"
	pinned := func(line string) manifests.Binding {
		b := at(line)
		b.SHA256 = pin
		return b
	}
	assert.Equal(t, manifests.Grant{
		Binding: pinned("21"), Tools: []string{"file_*"}, Source: host("testdata/policy/valid/wasm-tools"),
		Grants: manifests.Grants{Context: []manifests.NameGrant{{Binding: pinned("24"), Name: "project_id"}, {Binding: pinned("24"), Name: "tenant"}},
			Env: []manifests.EnvGrant{{Binding: pinned("26"), Name: "LANG", Value: "C"}, {Binding: pinned("27"), Name: "GREETING", Value: "hello,\n world "}},
			Files: []manifests.FileGrant{
				{Binding: pinned("29"), Path: permission.NewGuestPath("/project"), Host: permission.NewHostTemplate(host("testdata/policy/valid/workspaces/{project_id}")), Access: manifests.AccessReadWrite, Quota: manifests.Quota{Bytes: 256 << 20, Files: 1000}},
				{Binding: pinned("30"), Path: permission.NewGuestPath("/shared"), Host: permission.NewHostTemplate(host("/srv/shared")), Access: manifests.AccessRead},
			},
		},
	}, p.Grants[0])
	assert.Equal(t, []manifests.NetworkGrant{
		{Binding: at("34"), NetworkPermission: manifests.NetworkPermission{
			Host: "*.example.com", Ports: []int{443, 8443}, Methods: []string{"GET", "POST"}, Schemes: []string{"https"}, Paths: []string{"/", "/v1/"},
		}},
		{
			Binding:           at("39"),
			NetworkPermission: manifests.NetworkPermission{Host: "intranet.test", Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/"}},
			Addresses:         []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("192.168.1.7/32")},
			Connect:           "127.0.0.1:8443", Authorities: host("testdata/policy/valid/ca.pem"),
		},
	}, p.Grants[1].Network)
	assert.Equal(t, []manifests.SecretGrant{
		{Binding: at("42"), Name: "SEARCH_KEY", From: manifests.SecretSource{Env: "TAVILY_KEY"}, Host: "api.tavily.com", Place: manifests.SecretPlace{Header: "Authorization", Prefix: "Bearer "}},
		{
			Binding: at("43"), Name: "OTHER_KEY", From: manifests.SecretSource{File: host("testdata/policy/valid/other.key")}, Host: "2001:db8::1",
			Ports: []int{8443}, Schemes: []string{"https", "http"}, Place: manifests.SecretPlace{Query: "key"}, Force: true,
		},
		{
			Binding: at("44"), Name: "THIRD_KEY", Host: "third.example", Place: manifests.SecretPlace{Body: "api_key"},
			From: manifests.SecretSource{Age: host("testdata/policy/valid/secrets.age"), Identity: host("/etc/caisson/identity.txt"), Key: "third"},
		},
	}, p.Grants[2].Secrets)
	assert.Equal(t, []manifests.NameGrant{{Binding: at("48"), Name: "fetch_page"}, {Binding: at("48"), Name: "file_read"}}, p.Grants[2].Calls)
}

func TestLoadPolicyReadsDenials(t *testing.T) {
	network := &manifests.NetworkDeny{
		Host: "*.internal", Ports: []int{80}, Methods: []string{"POST"}, Schemes: []string{"http"}, Paths: []string{"/admin"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")},
	}
	assert.Equal(t, []manifests.PolicyDeny{
		{Deny: manifests.Deny{Origin: "full.yaml:50", Network: network}},
		{Tools: []string{"web_*"}, Deny: manifests.Deny{Origin: "full.yaml:51", Files: manifests.DenyDirectory("/shared", manifests.AccessReadWrite)}},
		{Deny: manifests.Deny{Origin: "full.yaml:52", Files: manifests.DenyDirectory("/etc", manifests.AccessRead)}},
		{Deny: manifests.Deny{Origin: "full.yaml:53", Secret: "OLD_KEY"}},
		{Tools: []string{"fetch_page"}, Deny: manifests.Deny{Origin: "full.yaml:54", Context: "user"}},
		{Deny: manifests.Deny{Origin: "full.yaml:55", Env: "LD_PRELOAD"}},
		{Tools: []string{"web_*"}, Deny: manifests.Deny{Origin: "full.yaml:56", Call: "file_write"}},
	}, loadPolicy(t).Deny)
	all := parsePolicy(t, "deny: [{network: {}}]").Deny[0].Network
	assert.Equal(t, &manifests.NetworkDeny{}, all, "nothing is narrowed down")
}

func TestLoadPolicyReadsApprovals(t *testing.T) {
	p := loadPolicy(t)
	assert.Equal(t, []manifests.PolicyAsk{{Origin: "full.yaml:57", Tool: "send_*"}, {Origin: "full.yaml:57", Tool: "file_write"}}, p.Ask)
	bound := at("59")
	bound.SHA256 = "9f2c0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7"
	assert.Equal(t, []manifests.PolicyApproval{
		{Binding: bound, Tools: []string{"file_delete", "tidy_?"}, Source: host("testdata/policy/valid/wasm-tools")},
		{Binding: at("60"), Tools: []string{"purge"}},
	}, p.Approve)
}

func TestLoadPolicyReadsFiles(t *testing.T) {
	require.ErrorIs(t, errOf(manifests.LoadPolicy(t.TempDir())), manifests.ErrFile)
	_, err := manifests.LoadPolicy(filepath.Join(t.TempDir(), "caisson.yaml"))
	require.ErrorIs(t, err, manifests.ErrFile)
	require.ErrorIs(t, err, os.ErrNotExist)

	folder := t.TempDir()
	file := filepath.Join(folder, "caisson.yaml")
	require.NoError(t, os.WriteFile(file, []byte(policyHead+"tools: [{path: a}]\n"), 0o600))
	assert.Equal(t, []string{filepath.Join(folder, "a")}, must(manifests.LoadPolicy(file)).Tools)
}

func TestPolicyIsReadAsJSON(t *testing.T) {
	p := must(manifests.ParsePolicy("a/caisson.json", []byte("{\"schema\": \"caisson-config/v1\",\n \"tools\": [{\"path\": \"x\"}],\n \"grants\": [\n  {\"tools\": [\"a\"], \"context\": [\"b\"]}]}")))
	assert.Equal(t, []string{host("a/x")}, p.Tools)
	assert.Equal(t, "caisson.json:4", p.Grants[0].Origin)
	require.ErrorIs(t, errOf(manifests.ParsePolicy("caisson.json", []byte(policyHead))), manifests.ErrInvalid)
}

func TestPolicyPatterns(t *testing.T) {
	for pattern, match := range map[string]map[string]bool{
		"fetch_page": {"fetch_page": true, "fetch_pages": false, "Fetch_page": false},
		"file_*":     {"file_read": true, "file_": true, "xfile_": false},
		"*":          {"a": true},
		"a?c":        {"abc": true, "ac": false},
		"[ab]-[0-9]": {"a-1": true, "c-1": false},
		"[^a]b":      {"ab": false, "cb": true},
	} {
		p := parsePolicy(t, `grants: [{tools: ["`+pattern+`"], context: [a]}]`)
		for tool, want := range match {
			assert.Equal(t, want, len(p.For(tool, "").Context) == 1, "%s, %s", pattern, tool)
		}
	}
	for _, pattern := range []string{"", "[", "[]", "[a", "a]b[", "a/b", `a\\*`, "a b", "{a,b}", "é", strings.Repeat("a", 129)} {
		found := policyProblems(t, `grants: [{tools: ["`+pattern+`"], context: [a]}]`)
		assert.Equal(t, "grants[0].tools[0]", found[0].Path, pattern)
		found = policyProblems(t, `deny: [{tools: ["`+pattern+`"], context: a}]`)
		assert.Equal(t, "deny[0].tools[0]", found[0].Path, pattern)
	}
}

func TestPolicyHostPaths(t *testing.T) {
	parse := func(file, written string) (string, error) {
		p, err := manifests.ParsePolicy(file, []byte(policyHead+"grants: [{tools: [a], files: [{path: /a, host: '"+written+"'}]}]"))
		if err != nil {
			return "", err
		}
		return p.Grants[0].Files[0].Host.String(), nil
	}
	for _, c := range []struct{ file, written, want string }{
		{"caisson.yaml", ".", "."},
		{"caisson.yaml", "./a", "a"},
		{"caisson.yaml", "..", ".."},
		{"etc/caisson.yaml", "a/{project_id}/b", "etc/a/{project_id}/b"},
		{"etc/caisson.yaml", "../{project_id}", "{project_id}"},
		{"etc/caisson.yaml", "a/../{project_id}/.", "etc/{project_id}"},
		{"/etc/caisson.yaml", "a", "/etc/a"},
		{"etc/caisson.yaml", "/srv/{user}/", "/srv/{user}"},
		{"etc/caisson.yaml", "./~", "etc/~"},
		{"etc/caisson.yaml", "~user", "etc/~user"},
		{"etc/{x}/caisson.yaml", "/srv", "/srv"},
	} {
		got, err := parse(c.file, c.written)
		require.NoError(t, err, c.written)
		assert.Equal(t, host(c.want), got, c.written)
	}
	for _, written := range []string{
		"", "~", "~/a", "{project_id}/..", "a/{project_id}/../../b", "x{project_id}", "{project_id}x", "{}", "{a-b}", "{{a}}", "}", "{1a}", "a\tb", "a\u202eb", "https://a.example/x", strings.Repeat("a", 4097),
	} {
		require.ErrorIs(t, errOf(parse("caisson.yaml", written)), manifests.ErrInvalid, written)
	}
	require.ErrorIs(t, errOf(parse("etc/{project_id}/caisson.yaml", "./workspaces")), manifests.ErrInvalid, "the folder's own braces are no context value")
}

func TestPolicyAddresses(t *testing.T) {
	grant := func(key, value string) string {
		return "grants: [{tools: [a], network: [{host: a, " + key + ": " + value + "}]}]"
	}
	for text, want := range map[string]string{"10.0.0.0/8": "10.0.0.0/8", "10.0.0.1": "10.0.0.1/32", `"::1"`: "::1/128", "0.0.0.0/0": "0.0.0.0/0", `"FD00::/8"`: "fd00::/8"} {
		got := parsePolicy(t, grant("addresses", "["+text+"]")).Grants[0].Network[0].Addresses
		assert.Equal(t, []netip.Prefix{netip.MustParsePrefix(want)}, got)
	}
	for _, text := range []string{`""`, "10/8", "10.0.0.0/33", "10.0.0.1/8", `"::ffff:10.0.0.1"`, `"fe80::1%a"`, `"fe80::%a/10"`, "localhost", "010.0.0.1", `"[::1]"`, "10.0.0.0/08"} {
		found := policyProblems(t, grant("addresses", "["+text+"]"))
		require.Len(t, found, 1, text)
		assert.Equal(t, "grants[0].network[0].addresses[0]", found[0].Path)
	}
	for text, want := range map[string]string{"127.0.0.1:1": "127.0.0.1:1", "[::1]:65535": "[::1]:65535", "[::ffff:127.0.0.1]:80": "127.0.0.1:80"} {
		assert.Equal(t, want, parsePolicy(t, grant("connect", `"`+text+`"`)).Grants[0].Network[0].Connect)
	}
	for _, text := range []string{"", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "::1:80", "localhost:80", "[fe80::1%a]:80", ":80"} {
		found := policyProblems(t, grant("connect", `"`+text+`"`))
		require.Len(t, found, 1, text)
		assert.Equal(t, "grants[0].network[0].connect", found[0].Path)
	}
}

func contextNames(g manifests.Grants) []string {
	var names []string
	for _, grant := range g.Context {
		names = append(names, grant.Name)
	}
	return names
}

func TestForTakesWhatNamesTheTool(t *testing.T) {
	p := parsePolicy(t, `
grants:
  - {tools: [a, b], context: [first], env: {A: "1"}, calls: [x, y]}
  - {tools: [b], context: [no], calls: [z]}
  - {tools: ["*"], context: [second], files: [{path: /x, host: ./x}], network: [{host: a}], secrets: [{name: A, from: {env: A}, host: a}]}
  - {tools: ["a*"], context: [first]}
deny:
  - {tools: [b], env: B}
  - {secret: A}
  - {tools: ["?"], context: c}
  - {tools: ["?"], call: y}
`)
	given := p.For("a", "anything")
	assert.Equal(t, []string{"first", "second", "first"}, contextNames(given), "in the policy's order; For does not remove duplicates")
	assert.Len(t, given.Env, 1)
	assert.Equal(t, []manifests.NameGrant{{Binding: manifests.Binding{Origin: "caisson.yaml:4"}, Name: "x"}, {Binding: manifests.Binding{Origin: "caisson.yaml:4"}, Name: "y"}}, given.Calls)
	assert.Len(t, given.Files, 1)
	assert.Len(t, given.Network, 1)
	assert.Len(t, given.Secrets, 1)
	assert.Equal(t, []manifests.Deny{{Origin: "caisson.yaml:10", Secret: "A"}, {Origin: "caisson.yaml:11", Context: "c"}, {Origin: "caisson.yaml:12", Call: "y"}}, given.Deny)
	assert.Empty(t, given.NoNetwork+given.NoWrites)
	assert.Equal(t, []string{"second"}, contextNames(p.For("c", "")))
	assert.Empty(t, p.For("c", "").Calls)
	assert.Len(t, p.For("long", "").Deny, 1)
	assert.Equal(t, given, p.For("a", "elsewhere"))

	given.Context[0].Name = "changed"
	assert.Equal(t, []string{"first", "second", "first"}, contextNames(p.For("a", "")), "a caller's change stays with the caller")

	assert.Equal(t, manifests.Grants{}, (*manifests.Policy)(nil).For("a", ""))
	assert.Equal(t, manifests.Grants{}, new(manifests.Policy).For("a", ""))
}

func TestForSaysWhatIsAskedAndApproved(t *testing.T) {
	p := parsePolicy(t, `
ask: [send_mail,
  "file_*"]
approve:
  - {tools: ["*"], source: ./tools}
  - {tools: [file_delete], sha256: 9F2C0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7}
`)
	bound := manifests.Binding{Origin: "caisson.yaml:7", SHA256: "9f2c0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7"}
	everywhere := manifests.Binding{Origin: "caisson.yaml:6"}
	for _, c := range []struct {
		tool, source string
		want         manifests.Grants
	}{
		{"send_mail", "", manifests.Grants{Ask: []string{"caisson.yaml:3"}}},
		{"send_mail", "tools/a.tool.yaml", manifests.Grants{Ask: []string{"caisson.yaml:3"}, Approved: []manifests.Binding{everywhere}}},
		{"file_delete", "other", manifests.Grants{Ask: []string{"caisson.yaml:4"}, Approved: []manifests.Binding{bound}}},
		{"file_delete", "tools", manifests.Grants{Ask: []string{"caisson.yaml:4"}, Approved: []manifests.Binding{everywhere, bound}}},
		{"file_", "", manifests.Grants{Ask: []string{"caisson.yaml:4"}}},
		{"calculator", "tools", manifests.Grants{Approved: []manifests.Binding{everywhere}}},
		{"calculator", "", manifests.Grants{}},
	} {
		assert.Equal(t, c.want, p.For(c.tool, c.source), "%s, loaded from %q", c.tool, c.source)
	}
}

func TestRedactions(t *testing.T) {
	p := parsePolicy(t, `
redact:
  - {tools: ["crm_*"], arguments: [/customer/email, /a~1b, ""], result: ["/records/*/iban"]}
`)
	assert.Equal(t, []manifests.PolicyRedaction{{
		Origin: "caisson.yaml:4", Tools: []string{"crm_*"}, Arguments: []string{"/customer/email", "/a~1b", ""},
		Result: []string{"/records/*/iban"},
	}}, p.Redact)
	for text, want := range map[string]string{
		"{tools: [a]}":                             "redacts nothing",
		"{arguments: [/a]}":                        "tools is required",
		"{tools: [], arguments: [/a]}":             "names no tool",
		"{tools: [a], arguments: [card]}":          "JSON Pointer such as /customer/email",
		"{tools: [a], result: [/a~2]}":             "JSON Pointer such as /customer/email",
		"{tools: [a], arguments: /a}":              "redact[0].arguments",
		"{tools: [a], arguments: [/a], source: .}": "source",
	} {
		_, err := manifests.ParsePolicy("caisson.yaml", []byte("schema: caisson-config/v1\nredact: ["+text+"]\n"))
		assert.ErrorContains(t, err, want, text)
	}
}

// TestAttackApprovalIsForTheNameAlone: an approval by name or glob does not apply to a tool with a similar name. The
// control is the name itself.
func TestAttackApprovalIsForTheNameAlone(t *testing.T) {
	for pattern, c := range map[string]struct{ is, others []string }{
		"file_delete": {[]string{"file_delete"}, []string{"File_delete", "FILE_DELETE", "file-delete", "file_delete2", "xfile_delete", "file_delet", "file_delete\n", "file_delete ", "file_d\u200belete", "\uff46ile_delete"}},
		"file_*":      {[]string{"file_delete", "file_"}, []string{"File_delete", "file-delete", "files_x", "afile_x", "file_a/b"}},
		"file_[a-c]":  {[]string{"file_b"}, []string{"file_B", "file_d", "file_bb"}},
		"file_?":      {[]string{"file_b"}, []string{"file_", "file_bb", "FILE_b"}},
	} {
		p := parsePolicy(t, `ask: ["`+pattern+`"]`+"\n"+`approve: [{tools: ["`+pattern+`"]}]`)
		for _, name := range c.is {
			given := p.For(name, "")
			assert.Len(t, given.Approved, 1, "%s, %s", pattern, name)
			assert.Len(t, given.Ask, 1, "%s, %s", pattern, name)
		}
		for _, name := range c.others {
			given := p.For(name, "")
			assert.Empty(t, given.Approved, "%s, %q", pattern, name)
			assert.Empty(t, given.Ask, "%s, %q", pattern, name)
		}
	}
}

func TestForComparesSources(t *testing.T) {
	absolute := must(filepath.Abs("tools"))
	for _, c := range []struct {
		source, from string
		want         bool
	}{
		{"./tools", "tools", true},
		{"./tools", "tools/", true},
		{"./tools", absolute, true},
		{"./tools", "tools/a/tool.yaml", true},
		{"./tools", "x/../tools/a", true},
		{"./tools/a.tool.yaml", "tools/a.tool.yaml", true},
		{absolute, "tools/a", true},
		{".", "tools", true},
		{"./tools", "", false},
		{".", "", false},
		{"./tools", "tools2", false},
		{"./tools", "tools/../other", false},
		{"./tools", "..", false},
		{"./tools", "tools/..", false},
		{"./tools/a", "tools", false},
		{"./tools", "./..tools", false},
		{".", "..tools", true},
	} {
		p := &manifests.Policy{Grants: []manifests.Grant{{Tools: []string{"a"}, Source: c.source, Grants: manifests.Grants{Context: manifests.GrantContext("x")}}}}
		assert.Equal(t, c.want, len(p.For("a", c.from).Context) == 1, "%s, loaded from %q", c.source, c.from)
	}
}

func TestForPinsEveryElement(t *testing.T) {
	b := manifests.Binding{Origin: "somewhere", SHA256: "9f"}
	own := manifests.Binding{Origin: "elsewhere"}
	p := &manifests.Policy{Grants: []manifests.Grant{{
		Binding: b, Tools: []string{"a"}, Grants: manifests.Grants{Context: manifests.GrantContext("x"), Files: []manifests.FileGrant{{Binding: own, Path: permission.NewGuestPath("/a")}},
			Network: make([]manifests.NetworkGrant, 1), Secrets: make([]manifests.SecretGrant, 1), Env: make([]manifests.EnvGrant, 1), Calls: make([]manifests.NameGrant, 1),
		},
	}}}
	given := p.For("a", "")
	assert.Equal(t, b, given.Context[0].Binding)
	assert.Equal(t, b, given.Network[0].Binding)
	assert.Equal(t, b, given.Secrets[0].Binding)
	assert.Equal(t, b, given.Env[0].Binding)
	assert.Equal(t, b, given.Calls[0].Binding)
	assert.Equal(t, manifests.Binding{Origin: "elsewhere", SHA256: "9f"}, given.Files[0].Binding)
	assert.Empty(t, p.Grants[0].Context[0].SHA256, "the policy is unchanged")
}

func TestBuiltinProfiles(t *testing.T) {
	want := []manifests.Profile{
		{Name: "strict", Limits: manifests.Limits{Timeout: 5 * time.Second, Memory: 32 << 20}, NoNetwork: true, NoWrites: true},
		{Name: "standard", Limits: manifests.Limits{Timeout: 10 * time.Second, Memory: 128 << 20}},
		{Name: "lenient", Limits: manifests.Limits{Timeout: 30 * time.Second, Memory: 512 << 20}},
	}
	assert.Equal(t, want, manifests.BuiltinProfiles())
	manifests.BuiltinProfiles()[0].Limits.Memory = 1
	for _, p := range []*manifests.Policy{nil, {}, {Profiles: []manifests.Profile{{Name: "strict"}}}} {
		for _, profile := range want {
			assert.Equal(t, profile, must(p.ProfileNamed(profile.Name)), "a built-in name means the built-in profile")
		}
		assert.Equal(t, "standard", must(p.ProfileNamed("")).Name)
	}
}

func TestProfileNamed(t *testing.T) {
	p := parsePolicy(t, "profile: mine\nprofiles: {mine: {extends: strict}}")
	mine := must(p.ProfileNamed(""))
	assert.Equal(t, "mine", mine.Name)
	assert.True(t, mine.NoNetwork)
	_, err := p.ProfileNamed("Mine")
	require.ErrorIs(t, err, manifests.ErrProfile)
	assert.ErrorContains(t, err, `"Mine"; there are strict, standard, lenient, mine`)
	require.ErrorIs(t, errOf((*manifests.Policy)(nil).ProfileNamed("mine")), manifests.ErrProfile)
	require.ErrorIs(t, errOf((&manifests.Policy{Profile: "gone"}).ProfileNamed("")), manifests.ErrProfile)
}

func TestProgramsExtendProfiles(t *testing.T) {
	strict := manifests.BuiltinProfiles()[0]
	mine := strict.Extend("mine", manifests.Limits{Timeout: time.Second, Fuel: 7})
	mine.NoNetwork = false
	assert.Equal(t, manifests.Profile{Name: "mine", Limits: manifests.Limits{Timeout: time.Second, Memory: 32 << 20, Fuel: 7}, NoWrites: true}, mine)
	assert.Equal(t, manifests.BuiltinProfiles()[0], strict)
	p := &manifests.Policy{Profile: "mine", Profiles: []manifests.Profile{mine}}
	assert.Equal(t, mine, must(p.ProfileNamed("")))
}

func TestProfilesExtendEachOther(t *testing.T) {
	p := parsePolicy(t, `
profiles:
  c: {extends: b, network: granted}
  a: {limits: {timeout: 3s}}
  b: {extends: a, limits: {memory: 1MiB}, network: none, writes: none}
  d: {}
`)
	limits := manifests.Limits{Timeout: 3 * time.Second, Memory: 128 << 20}
	narrow := limits
	narrow.Memory = 1 << 20
	assert.Equal(t, []manifests.Profile{
		{Name: "c", Limits: narrow, NoWrites: true},
		{Name: "a", Limits: limits},
		{Name: "b", Limits: narrow, NoNetwork: true, NoWrites: true},
		{Name: "d", Limits: manifests.Limits{Timeout: 10 * time.Second, Memory: 128 << 20}},
	}, p.Profiles)

	var chain strings.Builder
	for i := range 255 {
		fmt.Fprintf(&chain, "  p%d: {extends: p%d}\n", i, i+1)
	}
	p = parsePolicy(t, "profiles:\n"+chain.String()+"  p255: {extends: lenient}\n")
	assert.Equal(t, manifests.BuiltinProfiles()[2].Limits, p.Profiles[0].Limits)
}

func TestProfilesInACircle(t *testing.T) {
	for body, paths := range map[string][]string{
		"a: {extends: a}":                                                    {"profiles.a.extends"},
		"a: {extends: b}, b: {extends: a}":                                   {"profiles.a.extends"},
		"x: {extends: a}, a: {extends: b}, b: {extends: a}":                  {"profiles.a.extends"},
		"a: {extends: b}, b: {extends: a}, c: {extends: d}, d: {extends: c}": {"profiles.a.extends", "profiles.c.extends"},
		"a: {extends: none}, b: {extends: a}":                                {"profiles.a.extends"},
	} {
		var got []string
		for _, p := range policyProblems(t, "profiles: {"+body+"}") {
			got = append(got, p.Path)
		}
		assert.Equal(t, paths, got, body)
	}
}
