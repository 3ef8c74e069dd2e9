package openaitest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/server/sessions"
)

// serveRuns serves the household over HTTP, with heartbeats as often as there can be.
func serveRuns(t *testing.T) *httptest.Server {
	t.Helper()
	host, err := caisson.Open(t.Context(), caisson.Options{NoCache: true, Tools: []string{filepath.Join("..", "..", "..", "wasm-tools", "calculator")}})
	require.NoError(t, err)
	furnish(t, host.Registry())
	kept, err := sessions.New(host, sessions.Options{})
	require.NoError(t, err)
	api, err := rest.New(host, rest.Options{Sessions: kept, Heartbeat: time.Microsecond})
	require.NoError(t, err)
	caller := auth.Caller{ID: "t1", Tenant: "acme", Scopes: auth.Scopes()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(auth.With(r.Context(), caller)))
	}))
	t.Cleanup(func() {
		server.Close()
		assert.NoError(t, api.Close(context.Background()))
		assert.NoError(t, kept.Close(context.Background()))
		assert.NoError(t, host.Close(context.Background()))
	})
	return server
}

// TestTheirClientFollowsARun: the client starts a run, reads its events with its own reader until it waits, answers in
// its own types, and reads on until the run has ended.
func TestTheirClientFollowsARun(t *testing.T) {
	client := openai.NewClient(option.WithBaseURL(serveRuns(t).URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	var calls []map[string]string
	for _, c := range asked() {
		calls = append(calls, map[string]string{"id": c.ID, "type": c.Type, "name": c.Function.Name, "arguments": c.Function.Arguments})
	}
	type run struct {
		ID, Status string
		Records    []json.RawMessage
	}
	var started run
	require.NoError(t, client.Post(t.Context(), "runs", map[string]any{"calls": calls}, &started))
	follow := func() responses.Response {
		var raw *http.Response
		err := client.Get(t.Context(), "runs/"+started.ID+"/events", nil, &raw)
		return together(t, ssestream.NewStream[responses.ResponseStreamEventUnion](ssestream.NewDecoder(raw), err))
	}
	response := follow()
	assert.Equal(t, []string{
		"custom_tool_call", "file_search_call", "function_call", "image_generation_call", "local_shell_call", "mcp_approval_request", "mcp_call", "mcp_call", "mcp_call", "message", "web_search_call",
	}, kinds(response))

	answers := map[string]any{"dialect": "responses", "results": written(t, response)}
	require.NoError(t, client.Post(t.Context(), "runs/"+started.ID+"/submit_tool_outputs", answers, &started))
	second := follow()
	assert.Equal(t, []string{"mcp_call"}, kinds(second), "the call that was approved")
	assert.Equal(t, response.ID, second.PreviousResponseID)
	var ended run
	require.NoError(t, client.Get(t.Context(), "runs/"+started.ID, nil, &ended))
	assert.Equal(t, string(executor.Completed), ended.Status)
	assert.Len(t, ended.Records, len(calls))
}
