package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// recorder keeps the records of all calls, including those made by tools.
type recorder struct {
	mu    sync.Mutex
	ended []tool.Record
}

func (r *recorder) Record(_ context.Context, entry executor.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, entry.Record)
	return nil
}

// digestOf calls site_digest with these grants. It returns the call's record and those of the calls that
// it made.
func digestOf(t *testing.T, grants ...manifests.Grant) (tool.Record, []tool.Record) {
	t.Helper()
	root, err := guests.Compile(t.Context(), "examples/digest", "wasm-tools/web")
	require.NoError(t, err)
	require.NoError(t, guests.ShareCompiledCode(t.Context()))
	calls := &recorder{}
	host, err := caisson.Open(t.Context(), caisson.Options{
		Tools:    []string{filepath.Join(root, "examples", "digest"), filepath.Join(root, "wasm-tools", "web")},
		Policies: []*manifests.Policy{{Grants: grants}}, Executor: executor.Options{Recorder: calls},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, host.Close(context.Background())) })
	_, err = host.Call(t.Context(), "fetch_page", `{"url":"http://www.example.com/none"}`)
	require.NoError(t, err)
	calls.ended = nil // that call only compiled the tool: a caller's time includes the compilation of the tools that it calls
	report, err := host.Execute(t.Context(), executor.Batch{
		Calls: []tool.Call{{ID: "test", Type: "function", Function: tool.Function{Name: "site_digest", Arguments: `{"url":"http://www.example.com/"}`}}},
	})
	require.NoError(t, err)
	require.NotEmpty(t, calls.ended)
	assert.Equal(t, report.Records[0].CallID, calls.ended[len(calls.ended)-1].CallID, "a caller ends after the calls that it made")
	return report.Records[0], calls.ended[:len(calls.ended)-1]
}

// serve starts a small site and returns the grant to reach it.
func serve(t *testing.T) manifests.NetworkGrant {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<title>Home</title><meta name=description content="All of it."><a href=/x>X</a><a href=/gone>Gone</a><a href=http://other.test/>Other</a>`)
	})
	mux.HandleFunc("/x", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<title>X</title><p>First words.`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return manifests.NetworkGrant{
		NetworkPermission: manifests.NetworkPermission{Host: "www.example.com", Methods: []string{"GET"}, Schemes: []string{"http"}, Paths: []string{"/"}},
		Connect:           server.Listener.Addr().String(),
	}
}

// TestPermissionsAreEachToolsOwn: the digest covers pages that its own tool could not read.
func TestPermissionsAreEachToolsOwn(t *testing.T) {
	record, made := digestOf(t,
		manifests.Grant{Tools: []string{"site_digest"}, Grants: manifests.Grants{Calls: []manifests.NameGrant{{Name: "fetch_page"}}}},
		manifests.Grant{Tools: []string{"fetch_page"}, Grants: manifests.Grants{Network: []manifests.NetworkGrant{serve(t)}}})
	require.True(t, record.Result.Success, record.Result.Error)
	var found digest
	require.NoError(t, json.Unmarshal(record.Result.Data, &found))
	require.Len(t, found.Pages, 2)
	assert.Equal(t, summary{URL: "http://www.example.com/", Title: "Home", Description: "All of it."}, found.summary)
	assert.Equal(t, summary{URL: "http://www.example.com/x", Title: "X", Description: "First words."}, found.Pages[0])
	assert.Contains(t, found.Pages[1].Error, "404")
	require.Len(t, made, 4)
	for _, call := range made {
		assert.Equal(t, "fetch_page", call.Function.Name)
		assert.Equal(t, record.CallID, call.Parent)
	}
	assert.Len(t, record.HostCalls, 4)
}

// TestBothMustBeGranted: neither the call nor network access implies the other.
func TestBothMustBeGranted(t *testing.T) {
	grant := serve(t)
	record, made := digestOf(t, manifests.Grant{Tools: []string{"fetch_page"}, Grants: manifests.Grants{Network: []manifests.NetworkGrant{grant}}})
	assert.Equal(t, tool.Denied, record.Result.Kind)
	require.Len(t, record.Denials, 1)
	assert.JSONEq(t, `{"tools":["site_digest"],"calls":["fetch_page"]}`, string(record.Denials[0].Allow.Grant))
	assert.Empty(t, made)

	own := manifests.Grant{Tools: []string{"site_digest"}, Grants: manifests.Grants{Calls: []manifests.NameGrant{{Name: "fetch_page"}}, Network: []manifests.NetworkGrant{grant}}}
	record, made = digestOf(t, own)
	assert.Equal(t, tool.ToolFailed, record.Result.Kind)
	assert.Contains(t, record.Result.Error, "denied: network http://www.example.com/")
	require.Len(t, made, 1)
	assert.Equal(t, tool.Denied, made[0].Result.Kind)
	require.NotEmpty(t, made[0].Denials)
	assert.JSONEq(t, `{"tools":["fetch_page"],"network":[{"host":"www.example.com","schemes":["http"]}]}`, string(made[0].Denials[0].Allow.Grant))
}
