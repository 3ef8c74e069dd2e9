package runtime

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// projectRule is the rule that gives the directory /project to the tool that is called guest.
func projectRule(access string) json.RawMessage {
	return json.RawMessage(`{"tools":["guest"],"files":[{"path":"/project","host":null,"access":"` + access + `"}]}`)
}

func TestRequestMeetsGrant(t *testing.T) {
	dir := t.TempDir()
	cases := []struct {
		name, asks string
		grant      []manifests.FileGrant
		effective  string
		gives      string // by the rule that is missing
	}{
		{name: "nothing granted", asks: "read", gives: "read"},
		{name: "nothing granted to a writer", asks: "read-write", gives: "read-write"},
		{name: "another path granted", asks: "read", grant: []manifests.FileGrant{manifests.GrantDirectory("/other", dir, manifests.AccessRead)}, gives: "read"},
		{name: "read for read", asks: "read", grant: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessRead)}, effective: "/project (read)"},
		{name: "more than was asked for", asks: "read", grant: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessReadWrite)}, effective: "/project (read)"},
		{name: "less than was asked for", asks: "read-write", grant: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessRead)}, effective: "/project (read)", gives: "read-write"},
		{name: "two grants for one directory", asks: "read-write", grant: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessRead), manifests.GrantDirectory("/project", dir+"/.", manifests.AccessReadWrite)}, effective: "/project (read-write)"},
		{name: "write for write", asks: "read-write", grant: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessReadWrite)}, effective: "/project (read-write)"},
	}
	r := newRuntime(t, Options{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := manifest(t, probe, "permissions: {files: [{path: /project, access: "+c.asks+"}]}")
			decisions := load(t, r, m, manifests.Grants{Files: c.grant}).Decisions()
			require.Len(t, decisions, 1)
			assert.Equal(t, c.effective, decisions[0].Effective)
			assert.Nil(t, decisions[0].Allow.Manifest)
			if c.gives == "" {
				assert.Nil(t, decisions[0].Allow.Grant)
			} else {
				assert.Equal(t, projectRule(c.gives), decisions[0].Allow.Grant)
			}
			assert.NotEmpty(t, decisions[0].Reason)
		})
	}
}

// TestTwoGrantsKeepTheNarrowerQuota: a second grant for a directory does not lift the quota of the
// first, and a grant without a quota adds none.
func TestTwoGrantsKeepTheNarrowerQuota(t *testing.T) {
	dir := t.TempDir()
	r := newRuntime(t, Options{})
	m := manifest(t, probe, "permissions: {files: [{path: /project, access: read-write}]}")
	grant := func(access manifests.Access, bytes manifests.Bytes, files int) manifests.FileGrant {
		return manifests.FileGrant{Path: permission.NewGuestPath("/project"), Host: permission.NewHostTemplate(dir), Access: access, Quota: manifests.Quota{Bytes: bytes, Files: files}}
	}
	for _, c := range []struct{ a, b, want manifests.FileGrant }{
		{grant(manifests.AccessRead, 100, 9), grant(manifests.AccessReadWrite, 200, 5), grant(manifests.AccessReadWrite, 100, 5)},
		{grant(manifests.AccessRead, 0, 9), grant(manifests.AccessReadWrite, 200, 0), grant(manifests.AccessReadWrite, 200, 9)},
		{grant(manifests.AccessRead, 0, 0), grant(manifests.AccessReadWrite, 0, 0), grant(manifests.AccessReadWrite, 0, 0)},
	} {
		for _, both := range [][]manifests.FileGrant{{c.a, c.b}, {c.b, c.a}} {
			mounts := load(t, r, m, manifests.Grants{Files: both}).permit.Mounts
			require.Len(t, mounts, 1)
			assert.Equal(t, c.want.Access, mounts[0].Access)
			assert.Equal(t, c.want.Quota, manifests.Quota(mounts[0].Quota))
		}
	}
}

func TestGrantsThatMakeNoSense(t *testing.T) {
	dir := t.TempDir()
	r := newRuntime(t, Options{})
	m := manifest(t, probe, "permissions: {files: [{path: /project, access: read}]}")
	for name, grants := range map[string][]manifests.FileGrant{
		"relative guest path":       {manifests.GrantDirectory("project", dir, manifests.AccessRead)},
		"unclean guest path":        {manifests.GrantDirectory("/project/", dir, manifests.AccessRead)},
		"two of one path":           {manifests.GrantDirectory("/project", dir, manifests.AccessRead), manifests.GrantDirectory("/project", t.TempDir(), manifests.AccessRead)},
		"unknown access":            {manifests.GrantDirectory("/project", dir, "all")},
		"placeholder in an element": {manifests.GrantDirectory("/project", dir+"/x-{project_id}", manifests.AccessRead)},
		"no directory":              {manifests.GrantDirectory("/project", filepath.Join(dir, "absent"), manifests.AccessRead)},
		"no directory above":        {manifests.GrantDirectory("/project", filepath.Join(dir, "absent", "{project_id}"), manifests.AccessRead)},
	} {
		_, err := r.Load(t.Context(), m, manifests.Grants{Files: grants})
		assert.Error(t, err, name)
	}
}

func TestEnvironmentHoldsNoNUL(t *testing.T) {
	_, err := newRuntime(t, Options{}).Load(t.Context(), manifest(t, probe, ""), manifests.Grants{Env: []manifests.EnvGrant{{Name: "LANG", Value: "C\x00HOME=/"}}})
	assert.ErrorContains(t, err, "LANG")
}

func TestEnvironmentNeedsBoth(t *testing.T) {
	t.Setenv("HOST_SECRET", "of the host")
	r := newRuntime(t, Options{})
	m := manifest(t, probe, "permissions: {env: [LANG, HOST_SECRET]}")
	outcome := mustInvoke(t, load(t, r, m, manifests.Grants{Env: []manifests.EnvGrant{{Name: "LANG", Value: "C"}, {Name: "HOME", Value: "/home"}}}), `{}`)
	assert.Equal(t, []string{"LANG=C"}, decode[echoed](t, outcome.Result.Data).Environment)
}

func TestContextNeedsAGrant(t *testing.T) {
	m := manifest(t, probe, "context: [project_id]")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{})
	outcome, err := guest.Invoke(t.Context(), invocation(t, `{"project_id":"x"}`, map[string]string{"project_id": "x"}))
	require.ErrorIs(t, err, tool.Denied)
	assert.Equal(t, tool.Denial{Permission: "context", Value: "project_id", Rule: "no grant lets this tool have it", Allow: tool.Allow{Grant: json.RawMessage(`{"tools":["guest"],"context":["project_id"]}`)}}, outcome.Denials[0])
}

// TestReceiptsNameWhatIsMissing: a receipt for a path that the manifest asks for names the
// grant, and one for any other path the manifest's line too.
func TestReceiptsNameWhatIsMissing(t *testing.T) {
	m := manifest(t, "wasm-tools/files/files.wasm", `
module: {path: guest.wasm, args: [read], stdout: result}
permissions: {files: [{path: /project, access: read}]}`)
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{})
	outcome, err := invoke(t, guest, `{"path":"notes.txt"}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.Equal(t, "/project/notes.txt", outcome.Denials[0].Value)
	assert.Equal(t, tool.Allow{Grant: projectRule("read")}, outcome.Denials[0].Allow)
	assert.Contains(t, outcome.Denials[0].Rule, "line 6")
	assert.Contains(t, outcome.Result.Error, "denied")

	outcome, err = invoke(t, guest, `{"path":"/etc/passwd"}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.Contains(t, string(outcome.Denials[0].Allow.Manifest), `"path":"/etc"`)
	assert.Contains(t, string(outcome.Denials[0].Allow.Grant), `"path":"/etc"`)
}

// TestReceiptOfAnEscapeGrantsNothing: the receipt of an attempt to escape does not suggest that
// write access would help.
func TestReceiptOfAnEscapeGrantsNothing(t *testing.T) {
	s := newScene(t)
	m := manifest(t, probe, "permissions: {files: [{path: /project, access: read-write}]}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/project", s.project, manifests.AccessRead)}})
	_, outcome := alice(t, guest, open("relative", 0, reads), open("a.txt", 0, writes))
	require.Len(t, outcome.Denials, 2)
	assert.Contains(t, outcome.Denials[0].Rule, "leaves")
	assert.Zero(t, outcome.Denials[0].Allow)
	assert.Contains(t, outcome.Denials[1].Rule, "read-only")
	assert.Equal(t, projectRule("read-write"), outcome.Denials[1].Allow.Grant)
}

// TestWhatIsNotEnforcedIsRefused walks every key that this version can't keep.
func TestWhatIsNotEnforcedIsRefused(t *testing.T) {
	r := newRuntime(t, Options{})
	for path, text := range map[string]string{
		"module.path":     "module: {path: 'oci://registry.example/tool:1'}",
		"permissions.kv":  "permissions: {kv: {bytes: 1MiB}}",
		"permissions.llm": "permissions: {llm: {tokens: 100}}",
	} {
		t.Run(path, func(t *testing.T) {
			m := manifestIn(t, t.TempDir(), "guest", text)
			_, err := r.Load(t.Context(), m, manifests.Grants{})
			var invalid *manifests.Error
			require.ErrorAs(t, err, &invalid)
			require.Len(t, invalid.Problems, 1)
			problem := invalid.Problems[0]
			assert.Equal(t, path, problem.Path)
			assert.Equal(t, mistake.NotEnforced, problem.Kind)
			assert.Greater(t, problem.Line, 3, "the line of the key itself")
			assert.NotEmpty(t, problem.Fix)
			assert.True(t, errors.Is(err, manifests.ErrInvalid))
		})
	}
	assert.Len(t, unenforced, 3, "every rule has its case above")
}

// TestEveryKindOfGrantIsBoundToAModule: a grant of any kind to one module does not hold for another one, and the
// decision names the grant that would have held.
func TestEveryKindOfGrantIsBoundToAModule(t *testing.T) {
	r := newRuntime(t, Options{LookupEnv: withKey})
	m, dir := manifest(t, netprobe, everything), t.TempDir()
	for sha256, holds := range map[string]bool{"": true, digestOf(t, m).String(): true, strings.Repeat("ab", 32): false} {
		grants := granted(dir, func(g *manifests.Grants) {
			for _, b := range []*manifests.Binding{
				&g.Network[0].Binding, &g.Files[0].Binding, &g.Secrets[0].Binding, &g.Env[0].Binding, &g.Calls[0].Binding, &g.Context[0].Binding,
			} {
				b.SHA256 = sha256
			}
		})
		decisions := load(t, r, m, grants).Decisions()
		assert.Len(t, decisions, 6)
		for _, d := range decisions {
			assert.Equal(t, holds, d.Effective != "", "%s, bound to %q", d.Permission, sha256)
			if !holds {
				assert.Contains(t, d.Reason, "the grant of caisson.yaml:3 is for the module with sha256 abab")
			}
		}
	}
}

// TestGrantsOfOtherModulesAreNotLookedAt: one policy has a directory for each of two modules, of which
// one is elsewhere.
func TestGrantsOfOtherModulesAreNotLookedAt(t *testing.T) {
	r := newRuntime(t, Options{})
	m := manifest(t, netprobe, "permissions: {files: [{path: /project, access: read}], network: [{host: api.example.com}], secrets: [{name: KEY, header: X-Key, host: api.example.com}]}")
	digest := digestOf(t, m)
	own, other := manifests.Binding{SHA256: digest.String()}, manifests.Binding{SHA256: strings.Repeat("ab", 32)}
	dir, absent := t.TempDir(), t.TempDir()+"/absent"
	requests := manifests.NetworkPermission{Host: "api.example.com"}
	grants := manifests.Grants{
		Files: []manifests.FileGrant{{Binding: other, Path: permission.NewGuestPath("/project"), Host: permission.NewHostTemplate(absent)}, {Binding: own, Path: permission.NewGuestPath("/project"), Host: permission.NewHostTemplate(dir)}},
		Network: []manifests.NetworkGrant{
			{Binding: other, NetworkPermission: requests, Authorities: absent}, {Binding: own, NetworkPermission: requests},
		},
		Secrets: []manifests.SecretGrant{{Binding: other, Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{File: absent}}},
	}
	loaded := load(t, r, m, grants)
	require.Len(t, loaded.permit.Mounts, 1)
	assert.Equal(t, dir, loaded.permit.Mounts[0].Host.String())
	effective := map[string]bool{}
	for _, d := range loaded.Decisions() {
		effective[d.Permission] = d.Effective != ""
	}
	assert.Equal(t, map[string]bool{"files": true, "network": true, "secrets": false}, effective)

	grants.Files[0].SHA256 = ""
	_, err := r.Load(t.Context(), m, grants)
	assert.Error(t, err, "control: a directory that is not there is a slip")
}

// TestGrantErrorNamesTheGrant: the error says which grant is wrong, whatever characters its path has.
func TestGrantErrorNamesTheGrant(t *testing.T) {
	m := manifest(t, probe, "permissions: {files: [{path: /project, access: read}]}")
	grant := manifests.FileGrant{Path: permission.NewGuestPath("/100%d"), Host: permission.NewHostTemplate(filepath.Join(t.TempDir(), "absent")), Binding: manifests.Binding{Origin: "caisson.yaml:3"}}
	_, err := newRuntime(t, Options{}).Load(t.Context(), m, manifests.Grants{Files: []manifests.FileGrant{grant}})
	var wrong *Error
	require.ErrorAs(t, err, &wrong)
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorIs(t, err, ErrGrant)
	assert.Equal(t, Error{Op: "load", Tool: m.Name, Grant: GrantPlace{Path: "/100%d", Origin: "caisson.yaml:3"}, Err: wrong.Err}, *wrong)
	assert.True(t, strings.HasPrefix(wrong.Err.Error(), `caisson.yaml:3: grant for "/100%d": `), wrong.Error())
}
