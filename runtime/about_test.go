package runtime

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// about makes a call in which the guest reads its context and then takes the steps then. It returns the steps' results.
func about(t *testing.T, loaded *Tool, made tool.Invocation, then ...string) []json.RawMessage {
	t.Helper()
	arguments, err := tool.ParseArguments(steps(append([]string{`{"do":"context"}`}, then...)...))
	require.NoError(t, err)
	made.Arguments = arguments
	outcome, err := loaded.Invoke(t.Context(), made)
	require.NoError(t, err, outcome.Result.Error)
	return results(t, outcome)
}

// TestToolReadsAboutItsCall: a tool learns by which name it is called, the call's id, the files that are for it, who
// the user is, and the values of the request that it was granted; and it can open those files.
func TestToolReadsAboutItsCall(t *testing.T) {
	host := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(host, "tides.txt"), []byte("high water"), 0o600))
	m := manifest(t, streamprobe, "permissions: {files: [{path: /files, access: read}]}\ncontext: [project_id]\naliases: [speak]")
	loaded := load(t, newRuntime(t, Options{}), m, manifests.Grants{
		Files: []manifests.FileGrant{manifests.GrantDirectory("/files", host, manifests.AccessRead)}, Context: manifests.GrantContext("project_id"),
	})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	done := about(t, loaded, tool.Invocation{
		CallID: "the-call", Tool: "guest", Tenant: "acme", User: `ada "admin"`, Session: "s-1", Trace: trace,
		Request: tool.Request{Definition: json.RawMessage(`{"type": "search", "size": 1.50}`), Values: map[string]string{"locale": "de-CH", "<b>": "\x00\""}},
		Context: map[string]string{"project_id": "p<1>\n"},
		Files:   []tool.File{{Name: "My tides.txt", Path: "/files/tides.txt", MIMEType: "text/plain", Bytes: 10}},
	}, `{"do":"read","text":"/files/tides.txt"}`)
	assert.JSONEq(t, `{"call_id":"the-call","tool":"guest","tenant":"acme","user":"ada \"admin\"","session":"s-1",
		"context":{"project_id":"p<1>\n"},"files":[{"name":"My tides.txt","path":"/files/tides.txt","mime_type":"text/plain","bytes":10}],
		"traceparent":"`+trace+`","request":{"definition":{"type":"search","size":1.50},"values":{"locale":"de-CH","<b>":"\u0000\""}}}`, string(done[0]))
	assert.JSONEq(t, `"high water"`, string(done[1]))

	// Values that the host does not have are empty, and lists are lists.
	done = about(t, speaker(t, newRuntime(t, Options{}), ""), tool.Invocation{CallID: "1", Tool: "guest"})
	assert.JSONEq(t, `{"call_id":"1","tool":"guest","tenant":"","user":"","session":"","context":{},"files":[],"traceparent":"","request":{}}`, string(done[0]))

	outcome, err := loaded.Invoke(t.Context(), tool.Invocation{CallID: "1", Tool: "guest", Request: tool.Request{Definition: json.RawMessage(`{`)}})
	require.ErrorIs(t, err, tool.Internal)
	assert.False(t, outcome.Result.Success)
}

// TestAttackContextThatIsNotGranted: the request may hold more values than a tool gets. The control asks for one, and
// is granted it.
func TestAttackContextThatIsNotGranted(t *testing.T) {
	const secret = "of-the-tenant"
	given := map[string]string{"project_id": "mine", "token": secret, "Project_ID": secret, "project-id": secret}
	for asks, want := range map[string]string{
		"":                             `{}`,
		"context: [project_id]":        `{"project_id":"mine"}`,
		"context: [project_id, token]": `{"project_id":"mine","token":"` + secret + `"}`,
	} {
		loaded := load(t, newRuntime(t, Options{}), manifest(t, streamprobe, asks), manifests.Grants{Context: manifests.GrantContext("project_id", "token")})
		done := about(t, loaded, tool.Invocation{CallID: "1", Tool: "guest", Context: given})
		assert.JSONEq(t, want, string(decode[struct{ Context json.RawMessage }](t, done[0]).Context), asks)
	}
	// One that asks and is not granted it is not called at all.
	loaded := load(t, newRuntime(t, Options{}), manifest(t, streamprobe, "context: [token]"), manifests.Grants{Context: manifests.GrantContext("project_id")})
	outcome, err := loaded.Invoke(t.Context(), tool.Invocation{CallID: "1", Tool: "guest", Context: given})
	require.ErrorIs(t, err, tool.Denied)
	assert.NotContains(t, fmt.Sprint(outcome), secret)
}

// TestAttackFilesOutsideOfMounts: the tool does not even get the names of files that it cannot open. The control has a
// grant for all of them.
func TestAttackFilesOutsideOfMounts(t *testing.T) {
	var given []tool.File
	for i, path := range []string{
		"/files/a", "/files/deep/b", "/other/c", "/filesystem/d", "/files/../other/e", "/files/./f", "/files//g", "files/h", "/files", "/", "", "/files/", "/FILES/i", `\files\j`,
	} {
		given = append(given, tool.File{Name: fmt.Sprint("name ", i), Path: path})
	}
	grant := func(paths ...string) manifests.Grants {
		var grants manifests.Grants
		for _, path := range paths {
			grants.Files = append(grants.Files, manifests.GrantDirectory(path, t.TempDir(), manifests.AccessRead))
		}
		return grants
	}
	const files, both = "permissions: {files: [{path: /files, access: read}]}", "permissions: {files: [{path: /files, access: read}, {path: /other, access: read}]}"
	denied := grant("/files", "/other")
	denied.Deny = []manifests.Deny{{Files: manifests.DenyDirectory("/other", "")}}
	for name, test := range map[string]struct {
		asks   string
		grants manifests.Grants
		want   []string
	}{
		"nothing asked for":   {"", grant("/files", "/other"), nil},
		"nothing granted":     {both, grant(), nil},
		"one asked for":       {files, grant("/files", "/other"), []string{"/files/a", "/files/deep/b"}},
		"one granted":         {both, grant("/files"), []string{"/files/a", "/files/deep/b"}},
		"one denied":          {both, denied, []string{"/files/a", "/files/deep/b"}},
		"control: both given": {both, grant("/files", "/other"), []string{"/files/a", "/files/deep/b", "/other/c"}},
	} {
		loaded := load(t, newRuntime(t, Options{}), manifest(t, streamprobe, test.asks), test.grants)
		done := about(t, loaded, tool.Invocation{CallID: "1", Tool: "guest", Files: given})
		var paths []string
		for _, file := range decode[struct{ Files []tool.File }](t, done[0]).Files {
			paths = append(paths, file.Path)
		}
		assert.Equal(t, test.want, paths, name)
	}
}

// TestContentPartsReachTheRecord: results of several kinds, each with its media type, come through from what a program
// prints to the record.
func TestContentPartsReachTheRecord(t *testing.T) {
	const printed = `{"success":true,"output":"four parts","data":{"n":4},"content":[{"type":"text","text":"<b>plain</b>","mime_type":"text/html"},` +
		`{"type":"image","data":"iVBORw0KGgo=","mime_type":"image/png","name":"plot.png"},` +
		`{"type":"link","url":"https://example.com/?a=b&c","name":"Example"},{"type":"file","data":"JVBERi0=","mime_type":"application/pdf","name":"report.pdf"}]}`
	want := []tool.Content{
		{Type: "text", Text: "<b>plain</b>", MIMEType: "text/html"},
		{Type: "image", Data: []byte("\x89PNG\r\n\x1a\n"), MIMEType: "image/png", Name: "plot.png"},
		{Type: "link", URL: "https://example.com/?a=b&c", Name: "Example"},
		{Type: "file", Data: []byte("%PDF-"), MIMEType: "application/pdf", Name: "report.pdf"},
	}
	for _, stdout := range []string{"auto", "result"} {
		loaded := speaker(t, newRuntime(t, Options{}), "module: {path: guest.wasm, stdout: "+stdout+"}")
		outcome := mustListen(t, loaded, nil, steps(`{"do":"print","text":`+quoted(printed)+`}`))
		require.True(t, outcome.Result.Success, outcome.Result.Error)
		assert.Equal(t, want, outcome.Result.Content)

		stored := encode(t, tool.Record{CallID: "1", Result: outcome.Result})
		var read tool.Record
		require.NoError(t, json.Unmarshal(stored, &read))
		assert.Equal(t, outcome.Result, read.Result)
		var wire struct{ Result string }
		require.NoError(t, json.Unmarshal(stored, &wire))
		assert.JSONEq(t, printed, wire.Result)
	}
	// Data that is not base64 is not an image: the tool has failed. Only the model reads the error.
	outcome, err := listen(t, speaker(t, newRuntime(t, Options{}), "module: {path: guest.wasm, stdout: result}"), nil,
		steps(`{"do":"print","text":"{\"success\":true,\"content\":[{\"type\":\"image\",\"data\":\"not base64\"}]}"}`))
	require.NoError(t, err)
	assert.Equal(t, tool.ToolFailed, outcome.Result.Kind)
	assert.Contains(t, outcome.Result.Error, `member "content"`)
}

const everyHostCall = `permissions:
  network: [{host: api.example.com}]
  files: [{path: /project, access: read}]
  secrets: [{name: KEY, header: X-Key, host: api.example.com}]`

// asksEverything loads a tool with a grant for each permission that it requests: network, files and a secret.
func asksEverything(t *testing.T) *Tool {
	grant := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return "a value of some length", true }})
	return load(t, r, manifest(t, netprobe, everyHostCall), manifests.Grants{
		Network: []manifests.NetworkGrant{grant},
		Files:   []manifests.FileGrant{manifests.GrantDirectory("/project", t.TempDir(), manifests.AccessRead)},
		Secrets: []manifests.SecretGrant{{Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{Env: "KEY"}}},
	})
}

// TestHostCallsStandInTheirOrder: the record lists a call's host calls in their order, whichever package made them for
// the guest.
func TestHostCallsStandInTheirOrder(t *testing.T) {
	file, net, secret := `{"do":"file","name":"/project/absent.txt"}`, `{"do":"net","requests":[`+get("https://api.example.com/")+`]}`, `{"do":"secret","name":"KEY"}`
	outcome := mustInvoke(t, asksEverything(t), `{"steps":[`+file+`,`+net+`,`+secret+`,`+net+`,`+file+`]}`)
	var kinds []string
	for i, c := range outcome.HostCalls {
		kinds = append(kinds, c.Kind)
		assert.False(t, c.Began.IsZero(), "%+v", c)
		assert.True(t, i == 0 || !c.Began.Before(outcome.HostCalls[i-1].Began))
	}
	assert.Equal(t, []string{"files.open", "network.request", "secrets.exists", "network.request", "files.open"}, kinds)
	assert.EqualValues(t, len(kinds), outcome.Usage.HostCalls)
}

// TestManyHostCallsAreCountedAndNotListed: a guest that asks without end fills no record.
func TestManyHostCallsAreCountedAndNotListed(t *testing.T) {
	many := ""
	for i := range tool.MaxHostCalls {
		many += fmt.Sprintf(`{"do":"secret","name":"KEY"},{"do":"secret","name":"ABSENT_%d"},{"do":"file","name":"/project/absent.txt"},`, i)
	}
	outcome := mustInvoke(t, asksEverything(t), `{"steps":[`+many+`{"do":"secret","name":"KEY"}]}`)
	assert.Len(t, outcome.HostCalls, tool.MaxHostCalls)
	assert.EqualValues(t, 3*tool.MaxHostCalls+1, outcome.Usage.HostCalls)
	assert.Len(t, outcome.Denials, journal.MaxDenials)
}
