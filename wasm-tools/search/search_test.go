package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/search/internal/provider"
)

func TestRun(t *testing.T) {
	m, err := manifests.Load("tool.yaml")
	require.NoError(t, err)
	answered := func(body string) search {
		return search{
			do: func(caisson.Request) (*caisson.Response, error) {
				return &caisson.Response{Status: 200, Body: []byte(body)}, nil
			},
			progress: func(float64, string) error { return caisson.ErrOutside },
			settings: provider.Settings{HasSecret: func(name string) (bool, error) { return name == "TAVILY_API_KEY", nil }},
		}
	}
	for _, test := range []struct {
		name        string
		tool        search
		arguments   string
		output, err string
	}{
		{"results", answered(`{"results":[{"title":"One","url":"https://one.example/","content":"First.","published_date":"2026-01-01"},{"title":"","url":"https://two.example/","content":""}]}`),
			`{"query":"x","max_results":5,"language":"en","freshness":"day"}`, "1. One\n   https://one.example/\n   published: 2026-01-01\n   First.\n2. (no title)\n   https://two.example/", ""},
		{"none", answered(`{"results":[]}`), `{"query":"x"}`, "[nothing was found; try other words]", ""},
		{"a broken answer", answered(`{`), `{"query":"x"}`, "", "tavily: its answer could not be read"},
		{"no service", search{settings: provider.Settings{HasSecret: func(string) (bool, error) { return false, nil }}}, `{"query":"x"}`, "", "no search service is set up"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, m.Parameters.Validate(t.Context(), []byte(test.arguments)))
			var out bytes.Buffer
			require.NoError(t, call.Answer(strings.NewReader(test.arguments), &out, test.tool.answer))
			var result struct {
				Success       bool
				Output, Error string
				Data          json.RawMessage
			}
			require.NoError(t, json.Unmarshal(out.Bytes(), &result))
			assert.Equal(t, test.err == "", result.Success)
			assert.Equal(t, test.output, result.Output)
			assert.Contains(t, result.Error, test.err)
			if result.Success {
				assert.NoError(t, m.Result.Validate(t.Context(), result.Data))
			}
		})
	}
}
