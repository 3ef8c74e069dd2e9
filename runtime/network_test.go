package runtime

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const netprobe = "internal/guests/netprobe/netprobe.wasm"

// reply is netprobe's output about one request or question.
type reply struct {
	Status    int         `json:"status"`
	URL       string      `json:"url"`
	Headers   [][2]string `json:"headers"`
	Body      string      `json:"body"`
	Truncated bool        `json:"truncated"`
	Exists    *bool       `json:"exists"`
	Error     *struct {
		Status int          `json:"status"`
		Text   string       `json:"text"`
		Denial *tool.Denial `json:"denial"`
	} `json:"error"`
}

// serve starts a server over TLS that is known as api.example.com, and returns a grant that
// leads there.
func serve(t testing.TB, handler http.HandlerFunc) manifests.NetworkGrant {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	authorities := filepath.Join(t.TempDir(), "authorities.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(authorities, certificate, 0o600))
	return manifests.NetworkGrant{
		Binding: manifests.Binding{Origin: "caisson.yaml:7"},
		NetworkPermission: manifests.NetworkPermission{
			Host: "api.example.com", Methods: []string{"GET", "POST"}, Schemes: []string{"https"}, Paths: []string{"/"},
		},
		Connect: server.Listener.Addr().String(), Authorities: authorities,
	}
}

// fetch has the guest send requests, one after the other.
func fetch(t testing.TB, guest *Tool, requests ...string) ([]reply, tool.Outcome, error) {
	t.Helper()
	return do(t, guest, "net", requests...)
}

func mustFetch(t testing.TB, guest *Tool, requests ...string) ([]reply, tool.Outcome) {
	t.Helper()
	replies, outcome, err := fetch(t, guest, requests...)
	require.NoError(t, err, outcome.Result.Error)
	return replies, outcome
}

func do(t testing.TB, guest *Tool, what string, requests ...string) ([]reply, tool.Outcome, error) {
	t.Helper()
	outcome, err := invoke(t, guest, `{"steps":[{"do":"`+what+`","requests":[`+strings.Join(requests, ",")+`]}]}`)
	if outcome.Result.Data == nil {
		return nil, outcome, err
	}
	return decode[[][]reply](t, outcome.Result.Data)[0], outcome, err
}

func get(url string) string { return `{"method":"GET","url":"` + url + `"}` }

func TestToolReachesWhatIsAskedForAndGranted(t *testing.T) {
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" "+string(body))
	})
	m := manifest(t, netprobe, "permissions: {secrets: [{name: UNUSED, header: X-Unused, host: unused.example}], network: [{host: api.example.com, methods: [GET, POST], paths: [/v1]}]}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Network: []manifests.NetworkGrant{grant}})

	require.Len(t, guest.Decisions(), 2)
	assert.Contains(t, guest.Decisions()[1].Granted, "caisson.yaml:7")
	assert.NotEmpty(t, guest.Decisions()[1].Effective)

	replies, outcome := mustFetch(t, guest, get("https://api.example.com/v1/a"), `{"method":"POST","url":"https://api.example.com/v1/b","body":"hello"}`)
	assert.Equal(t, "GET /v1/a ", replies[0].Body)
	assert.Equal(t, "POST /v1/b hello", replies[1].Body)
	require.Len(t, outcome.HostCalls, 2)
	assert.Equal(t, "GET https://api.example.com/v1/a", outcome.HostCalls[0].Target)
	assert.Equal(t, "200", outcome.HostCalls[0].Status)
	assert.Positive(t, outcome.HostCalls[1].Bytes)
	assert.True(t, outcome.HostCalls[1].Allowed)
	assert.EqualValues(t, 2, outcome.Usage.HostCalls)

	// A denial is a value for the guest, and a receipt for everyone else. The guest continued and succeeded, so the call
	// did too.
	replies, outcome = mustFetch(t, guest, get("https://api.example.com/v2?key=hunter2"))
	require.NotNil(t, replies[0].Error)
	require.NotNil(t, replies[0].Error.Denial)
	require.Len(t, outcome.Denials, 1)
	assert.Equal(t, *replies[0].Error.Denial, outcome.Denials[0])
	assert.Equal(t, "network", outcome.Denials[0].Permission)
	assert.NotContains(t, outcome.Denials[0].Value, "hunter2")
	assert.False(t, outcome.HostCalls[0].Allowed)
}

func TestRequestsSideBySide(t *testing.T) {
	var inFlight, most atomic.Int32
	arrived := make(chan struct{}, 5)
	all := make(chan struct{})
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n := inFlight.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer inFlight.Add(-1)
		if arrived <- struct{}{}; len(arrived) == cap(arrived) {
			close(all)
		}
		<-all // no request is answered before all have come
		_, _ = io.WriteString(w, r.URL.Path)
	})
	m := manifest(t, netprobe, "permissions: {secrets: [{name: UNUSED, header: X-Unused, host: unused.example}], network: [{host: api.example.com}]}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Network: []manifests.NetworkGrant{grant}})
	var requests []string
	for _, path := range []string{"/a", "/b", "/c", "/d", "/e"} {
		requests = append(requests, get("https://api.example.com"+path))
	}
	replies, outcome, err := do(t, guest, "netall", requests...)
	require.NoError(t, err, outcome.Result.Error)
	for i, path := range []string{"/a", "/b", "/c", "/d", "/e"} {
		assert.Equal(t, path, replies[i].Body)
	}
	assert.EqualValues(t, 5, most.Load())
}

func TestHTTPLimits(t *testing.T) {
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 100<<10)) })
	m := manifest(t, netprobe, "permissions: {secrets: [{name: UNUSED, header: X-Unused, host: unused.example}], network: [{host: api.example.com}]}\nlimits: {http_calls: 2, http_bytes: 150KiB, output: 1MiB}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Network: []manifests.NetworkGrant{grant}})
	assert.Equal(t, 2, guest.Limits().HTTPCalls)
	replies, _ := mustFetch(t, guest, get("https://api.example.com/a"), get("https://api.example.com/b"), get("https://api.example.com/c"))
	assert.Len(t, replies[0].Body, 100<<10)
	assert.True(t, replies[1].Truncated)
	assert.Len(t, replies[1].Body, 50<<10)
	require.NotNil(t, replies[2].Error)
	assert.Contains(t, replies[2].Error.Text, "limit")
}

func TestDeadlineEndsARequest(t *testing.T) {
	release := make(chan struct{})
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	m := manifest(t, netprobe, "permissions: {secrets: [{name: UNUSED, header: X-Unused, host: unused.example}], network: [{host: api.example.com}]}\nlimits: {timeout: 300ms}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Network: []manifests.NetworkGrant{grant}})
	_, outcome, err := fetch(t, guest, get("https://api.example.com/"))
	require.ErrorIs(t, err, tool.Deadline)
	assert.Less(t, outcome.Usage.Wall.Seconds(), 2.0)
	require.Len(t, outcome.HostCalls, 1, "a request that did not end is in the record")
}

func TestProfileTakesAway(t *testing.T) {
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	dir := t.TempDir()
	strict := manifests.Profile{Name: "strict", NoNetwork: true, NoWrites: true, Limits: manifests.Limits{Memory: 64 << 20}}
	r := newRuntime(t, Options{Profile: strict})
	m := manifest(t, netprobe, "permissions: {secrets: [{name: UNUSED, header: X-Unused, host: unused.example}], network: [{host: api.example.com}], files: [{path: /project, access: read-write}]}")
	guest := load(t, r, m, manifests.Grants{
		Network: []manifests.NetworkGrant{grant},
		Files:   []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessReadWrite)},
	})
	assert.EqualValues(t, 64<<20, guest.Limits().Memory)
	decisions := guest.Decisions()
	require.Len(t, decisions, 3)
	assert.Equal(t, "/project (read)", decisions[0].Effective)
	assert.Contains(t, decisions[0].Reason, "strict")
	assert.Empty(t, decisions[2].Effective)
	assert.Contains(t, decisions[2].Reason, "strict")
	replies, _ := mustFetch(t, guest, get("https://api.example.com/"))
	require.NotNil(t, replies[0].Error)
	assert.Contains(t, replies[0].Error.Denial.Rule, "strict")
	assert.Zero(t, replies[0].Error.Denial.Allow, "nothing that a tool or its grants could say helps")

	writer := load(t, r, manifest(t, probe, "permissions: {files: [{path: /project, access: read-write}]}"), manifests.Grants{
		Files: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessReadWrite)},
	})
	outcome := mustInvoke(t, writer, `{"do":"raw","calls":[{"call":"path_create_directory","fd":4,"path":"sub"}]}`)
	require.Len(t, outcome.Denials, 1)
	assert.Equal(t, "the directory /project is read-only: the profile strict allows no writing", outcome.Denials[0].Rule)
	assert.Zero(t, outcome.Denials[0].Allow)
}

func TestDenyBeatsEveryGrant(t *testing.T) {
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	dir := t.TempDir()
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return "a value of some length", true }})
	m := manifest(t, netprobe, `permissions:
  network: [{host: api.example.com}]
  files: [{path: /project, access: read-write}, {path: /other, access: read-write}]
  secrets: [{name: KEY, header: X-Key, host: api.example.com}]
  env: [LANG]
context: [project_id]`)
	grants := manifests.Grants{
		Network: []manifests.NetworkGrant{grant}, Context: manifests.GrantContext("project_id"),
		Env:     []manifests.EnvGrant{{Name: "LANG", Value: "C"}},
		Secrets: []manifests.SecretGrant{{Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{Env: "KEY"}}},
		Files: []manifests.FileGrant{
			manifests.GrantDirectory("/project", dir, manifests.AccessReadWrite), manifests.GrantDirectory("/other", dir, manifests.AccessReadWrite),
		},
	}
	for _, d := range load(t, r, m, grants).Decisions() {
		assert.NotEmpty(t, d.Effective, "without rules: %+v", d)
	}
	grants.Deny = []manifests.Deny{
		{Origin: "p:1", Files: manifests.DenyDirectory("/project", "")},
		{Origin: "p:2", Files: manifests.DenyDirectory("/", manifests.AccessReadWrite)},
		{Origin: "p:3", Network: &manifests.NetworkDeny{Host: "*.example.com"}},
		{Origin: "p:4", Secret: "KEY"}, {Origin: "p:5", Context: "project_id"}, {Origin: "p:6", Env: "LANG"},
	}
	decisions := load(t, r, m, grants).Decisions()
	effective := map[string]string{}
	for _, d := range decisions {
		effective[d.Permission+" "+d.Requested] = d.Effective
		if d.Effective != d.Requested {
			assert.Contains(t, d.Reason, "p:", "the rule is named: %+v", d)
			assert.Zero(t, d.Allow, "no grant would help: %+v", d)
		}
	}
	assert.Equal(t, "/other (read)", effective["files /other (read-write)"])
	delete(effective, "files /other (read-write)")
	for what, got := range effective {
		assert.Empty(t, got, what)
	}
	grants.Deny = []manifests.Deny{{Origin: "p:9", Files: manifests.DenyDirectory("/project/private", "")}}
	_, err := r.Load(t.Context(), m, grants)
	assert.ErrorContains(t, err, "a part cannot be denied")
}

// TestGrantsAreBoundToAModule: a grant to one module does not hold for another one, neither when the tool is loaded nor
// when the file is replaced later.
func TestGrantsAreBoundToAModule(t *testing.T) {
	r := newRuntime(t, Options{})
	m := manifest(t, probe, "permissions: {env: [LANG]}")
	digest := digestOf(t, m)
	env := func(sha256 string) manifests.Grants {
		return manifests.Grants{Env: []manifests.EnvGrant{{Binding: manifests.Binding{Origin: "caisson.yaml:3", SHA256: sha256}, Name: "LANG", Value: "C"}}}
	}
	other := load(t, r, m, env(strings.Repeat("ab", 32)))
	assert.Empty(t, other.Decisions()[0].Effective)
	assert.Contains(t, other.Decisions()[0].Reason, "caisson.yaml:3")
	assert.Contains(t, other.Decisions()[0].Reason, digest.String())

	guest := load(t, r, m, env(digest.String()))
	assert.Equal(t, "LANG", guest.Decisions()[0].Effective)
	source, err := os.ReadFile(filepath.Join(root, "examples", "turn", "hostile", "hoard", "hoard.wasm"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(m.File), "guest.wasm"), source, 0o600))
	_, err = invoke(t, guest, `{}`)
	assert.ErrorIs(t, err, ErrDigest)
	assert.Empty(t, load(t, r, m, env(digest.String())).Decisions()[0].Effective, "it is another module now")

	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(m.File), "guest.wasm")))
	assert.Empty(t, load(t, r, m, env(digest.String())).Decisions()[0].Effective, "and now it is none")
	assert.Empty(t, load(t, r, m, env(strings.Repeat("0", 64))).Decisions()[0].Effective, "which has no digest")
}

func TestSettingsMayBeAlternatives(t *testing.T) {
	m := manifest(t, probe, "requires: [FIRST_KEY|SECOND_KEY]\npermissions: {env: [SECOND_KEY]}")
	r := newRuntime(t, Options{})
	guest := load(t, r, m, manifests.Grants{})
	assert.Equal(t, "needs the setting FIRST_KEY or SECOND_KEY", guest.Unavailable())
	_, err := invoke(t, guest, `{}`)
	assert.ErrorIs(t, err, tool.Denied)
	assert.Empty(t, load(t, r, m, manifests.Grants{Env: []manifests.EnvGrant{{Name: "SECOND_KEY", Value: "x"}}}).Unavailable())
	assert.Empty(t, load(t, newRuntime(t, Options{Settings: []string{"FIRST_KEY"}}), m, manifests.Grants{}).Unavailable())
}

// TestDirectoriesMayBeRequired: a tool is unavailable until the directory is granted, also if it was denied.
func TestDirectoriesMayBeRequired(t *testing.T) {
	m := manifest(t, probe, "requires: [/skills, KEY|/data]\npermissions: {files: [{path: /skills}, {path: /data}]}")
	r := newRuntime(t, Options{})
	grants := manifests.Grants{}
	assert.Equal(t, "needs a granted directory at /skills, the setting KEY or a granted directory at /data", load(t, r, m, grants).Unavailable())
	grants.Files = []manifests.FileGrant{manifests.GrantDirectory("/skills", t.TempDir(), manifests.AccessRead)}
	assert.Equal(t, "needs the setting KEY or a granted directory at /data", load(t, r, m, grants).Unavailable())
	assert.Empty(t, load(t, newRuntime(t, Options{Settings: []string{"KEY"}}), m, grants).Unavailable())
	grants.Files = append(grants.Files, manifests.GrantDirectory("/data", t.TempDir(), manifests.AccessRead))
	guest := load(t, r, m, grants)
	assert.Empty(t, guest.Unavailable())
	grants.Deny = []manifests.Deny{{Files: manifests.DenyDirectory("/skills", manifests.AccessRead)}}
	denied := load(t, r, m, grants)
	assert.Equal(t, "needs a granted directory at /skills", denied.Unavailable())
	_, err := invoke(t, denied, `{}`)
	assert.ErrorIs(t, err, tool.Denied)
}

// asJSON returns the outcome's record in its stored form.
func asJSON(t testing.TB, outcome tool.Outcome) string {
	t.Helper()
	text, err := json.Marshal(tool.Record{
		Result: outcome.Result, Usage: outcome.Usage, Denials: outcome.Denials, HostCalls: outcome.HostCalls, Log: outcome.Log,
	})
	require.NoError(t, err)
	return string(text)
}
