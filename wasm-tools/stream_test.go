package tools_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestWebSearchStreamsAsItHappens: in a stream of the Responses API a call of web_search is a search of the web. The
// service does not answer before a client has read that it is searching.
func TestWebSearchStreamsAsItHappens(t *testing.T) {
	searching := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST api.tavily.com/search", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-searching:
			io.WriteString(w, `{"results":[{"title":"One","url":"https://one.example/","content":"1"},{"title":"Two","url":"https://two.example/","content":"2"}]}`)
		case <-time.After(5 * time.Second):
			http.Error(w, "the client did not read the event", http.StatusServiceUnavailable)
		case <-r.Context().Done():
		}
	})
	server := serve(t, mux, "api.tavily.com")
	c := load(t, "web_search", manifests.Grants{
		Network: []manifests.NetworkGrant{server.grant("api.tavily.com", "POST")},
		Secrets: []manifests.SecretGrant{secret(t, "TAVILY_API_KEY", "api.tavily.com")},
	})
	stream, err := executor.NewStream(executor.StreamOptions{})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := c.run.Execute(t.Context(), executor.Batch{Stream: stream, Calls: []tool.Call{
			{ID: "a", Type: "function", Function: tool.Function{Name: "web_search", Arguments: `{"query":"caissons"}`}},
		}})
		ended <- err
	}()

	events := responses.NewEvents(responses.EventsOptions{})
	var names []string
	var done struct {
		Item struct {
			Type, Status string
			Action       struct {
				Query   string
				Sources []struct{ Type, URL string }
			}
		}
	}
	for event, err := range stream.Events(t.Context()) {
		require.NoError(t, err)
		mapped, err := events.Map(event)
		require.NoError(t, err)
		for _, e := range mapped {
			if name, ok := strings.CutPrefix(e.Name, "response.web_search_call."); ok {
				names = append(names, name)
			}
			switch e.Name {
			case "response.web_search_call.searching":
				close(searching)
			case "response.output_item.done":
				require.NoError(t, json.Unmarshal(e.Data, &done))
			}
		}
	}
	require.NoError(t, <-ended)
	assert.Equal(t, []string{"in_progress", "searching", "completed"}, names)
	assert.Equal(t, "web_search_call", done.Item.Type)
	assert.Equal(t, "completed", done.Item.Status)
	assert.Equal(t, "caissons", done.Item.Action.Query)
	assert.Equal(t, []struct{ Type, URL string }{{"url", "https://one.example/"}, {"url", "https://two.example/"}}, done.Item.Action.Sources)
}
