package manifests_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

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
	assert.Equal(t, []string{"first", "second", "first"}, contextNames(given), "in the policy's order; what stands twice is for whoever enforces it")
	assert.Len(t, given.Env, 1)
	assert.Equal(t, []manifests.CallGrant{{Binding: manifests.Binding{Origin: "caisson.yaml:4"}, Tool: "x"}, {Binding: manifests.Binding{Origin: "caisson.yaml:4"}, Tool: "y"}}, given.Calls)
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
	bound := manifests.ApprovalGrant{Binding: manifests.Binding{Origin: "caisson.yaml:7", SHA256: "9f2c0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7"}}
	everywhere := manifests.ApprovalGrant{Binding: manifests.Binding{Origin: "caisson.yaml:6"}}
	for _, c := range []struct {
		tool, source string
		want         manifests.Grants
	}{
		{"send_mail", "", manifests.Grants{Ask: []string{"caisson.yaml:3"}}},
		{"send_mail", "tools/a.tool.yaml", manifests.Grants{Ask: []string{"caisson.yaml:3"}, Approved: []manifests.ApprovalGrant{everywhere}}},
		{"file_delete", "other", manifests.Grants{Ask: []string{"caisson.yaml:4"}, Approved: []manifests.ApprovalGrant{bound}}},
		{"file_delete", "tools", manifests.Grants{Ask: []string{"caisson.yaml:4"}, Approved: []manifests.ApprovalGrant{everywhere, bound}}},
		{"file_", "", manifests.Grants{Ask: []string{"caisson.yaml:4"}}},
		{"calculator", "tools", manifests.Grants{Approved: []manifests.ApprovalGrant{everywhere}}},
		{"calculator", "", manifests.Grants{}},
	} {
		assert.Equal(t, c.want, p.For(c.tool, c.source), "%s, loaded from %q", c.tool, c.source)
	}
}

// TestAttackApprovalIsForTheNameAlone: what is approved of by name, or by glob, is no other tool that
// is called nearly the same. The control is the name itself.
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
	absolute, err := filepath.Abs("tools")
	require.NoError(t, err)
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
		p := &manifests.Policy{Grants: []manifests.Grant{{Tools: []string{"a"}, Source: c.source, Context: manifests.GrantContext("x")}}}
		assert.Equal(t, c.want, len(p.For("a", c.from).Context) == 1, "%s, loaded from %q", c.source, c.from)
	}
}

func TestForPinsEveryElement(t *testing.T) {
	b := manifests.Binding{Origin: "somewhere", SHA256: "9f"}
	own := manifests.Binding{Origin: "elsewhere"}
	p := &manifests.Policy{Grants: []manifests.Grant{{
		Binding: b, Tools: []string{"a"}, Context: manifests.GrantContext("x"), Files: []manifests.FileGrant{{Binding: own, Path: "/a"}},
		Network: make([]manifests.NetworkGrant, 1), Secrets: make([]manifests.SecretGrant, 1), Env: make([]manifests.EnvGrant, 1), Calls: make([]manifests.CallGrant, 1),
	}}}
	given := p.For("a", "")
	assert.Equal(t, b, given.Context[0].Binding)
	assert.Equal(t, b, given.Network[0].Binding)
	assert.Equal(t, b, given.Secrets[0].Binding)
	assert.Equal(t, b, given.Env[0].Binding)
	assert.Equal(t, b, given.Calls[0].Binding)
	assert.Equal(t, manifests.Binding{Origin: "elsewhere", SHA256: "9f"}, given.Files[0].Binding)
	assert.Empty(t, p.Grants[0].Context[0].SHA256, "the policy stays as it is")
}
