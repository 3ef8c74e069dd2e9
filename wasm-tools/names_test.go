package tools_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

// taught are the parameters that models know of tools with these names, and their types and defaults.
var taught = map[string]map[string]string{
	"file_read":   {"path": `"string"`, "encoding": `"string" "utf-8"`},
	"file_write":  {"path": `"string"`, "content": `"string"`, "encoding": `"string" "utf-8"`, "mode": `["write","append"] "write"`},
	"file_delete": {"path": `"string"`},
	"file_list":   {"path": `"string" "."`, "pattern": `"string" "*"`},
	"file_exists": {"path": `"string"`},
	"file_mkdir":  {"path": `"string"`},
	"web_search":  {"query": `"string"`, "max_results": `"integer" 5`},
	"fetch_page":  {"url": `"string"`, "extract_type": `["text","links","structured"] "text"`},
	"crawl_batch": {"urls": `"array"`, "extract_type": `["text","links","structured"] "text"`},
	"calculator":  {"expression": `"string"`},
	"get_weather": {"city": `"string"`},
	"json_process": {
		"json_string": `"string"`,
		"operation":   `["parse","validate","format","minify","keys","get","query","sort_keys","flatten","patch","merge_patch","diff","merge_diff"]`,
	},
	// Without a strictness, only the operator's profile and flags decide, so it has no default.
	"execute_python":     {"code": `"string"`, "input": `"string"`, "strictness": `"string"`},
	"execute_javascript": {"code": `"string"`, "input": `"string"`, "strictness": `"string"`},
	"read_skill":         {"skill_name": `"string"`, "file_path": `"string" "SKILL.md"`},
	"execute_skill_script": {
		"skill_name": `"string"`, "script_path": `"string"`, "args": `"array"`, "input": `"string"`,
	},
	"text_process": {
		"text":      `"string"`,
		"operation": `["count","lines","words","frequency","upper","lower","title","reverse","trim","collapse","dedent","clean","slug","sort","unique","join","split","slice","find","replace","base64_encode","base64_decode","url_encode","url_decode"]`,
	},
	"thinking": {
		"thought": `"string"`, "next_thought_needed": `"boolean"`, "thought_number": `"integer"`, "total_thoughts": `"integer"`, "is_revision": `"boolean"`,
		"revises_thought": `"integer"`, "branch_from_thought": `"integer"`, "branch_id": `"string"`, "needs_more_thoughts": `"boolean"`,
	},
	"todo_write":            {"task": `"string"`, "steps": `"array"`},
	"knowledge_search":      {"queries": `"array"`, "knowledge_base_ids": `"array"`, "limit": `"integer" 10`},
	"grep_chunks":           {"patterns": `"array"`, "knowledge_base_ids": `"array"`, "max_results": `"integer" 50`},
	"list_knowledge_chunks": {"knowledge_id": `"string"`, "limit": `"integer" 20`, "offset": `"integer" 0`},
	"get_document_info":     {"knowledge_ids": `"array"`},
	"query_knowledge_graph": {"query": `"string"`, "knowledge_base_ids": `"array"`},
	"database_query":        {"sql": `"string"`},
	"data_schema":           {"knowledge_id": `"string"`},
	"data_analysis":         {"knowledge_id": `"string"`, "sql": `"string"`},
}

// TestNamesAreThoseOfTheManifests: every constant is a tool's name, and every tool has one.
func TestNamesAreThoseOfTheManifests(t *testing.T) {
	var names []string
	for _, m := range compiled(t) {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	assert.Equal(t, names, toolname.All())
}

// TestParametersHaveTheNamesThatModelsKnow: a model that has been taught the names can call the tools, and none is
// told of the names that parameters had before.
func TestParametersHaveTheNamesThatModelsKnow(t *testing.T) {
	found := 0
	for _, m := range compiled(t) {
		want, ok := taught[m.Name]
		if !ok {
			continue
		}
		found++
		var shown struct {
			Properties map[string]struct{ Type, Enum, Default json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(m.ModelParameters, &shown))
		for name, like := range want {
			p := shown.Properties[name]
			got := string(p.Type)
			if p.Enum != nil {
				got = compact(t, p.Enum)
			}
			if p.Default != nil {
				got += " " + string(p.Default)
			}
			assert.Equal(t, like, got, "%s of %s", name, m.Name)
		}
		for _, alias := range m.ParameterAliases {
			assert.NotContains(t, shown.Properties, alias.Name, m.Name)
		}
	}
	assert.Equal(t, len(taught), found)
}

func compact(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal(text, &value))
	written, err := json.Marshal(value)
	require.NoError(t, err)
	return string(written)
}

// TestCallsUnderEitherName: the names that parameters had before mean the same. The file tools' are in the tests of
// their manifests.
func TestCallsUnderEitherName(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("www.example.com/", func(w http.ResponseWriter, _ *http.Request) { page(w, `<a href=next>Next</a>`) })
	mux.HandleFunc("POST api.tavily.com/search", func(w http.ResponseWriter, r *http.Request) {
		asked, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		text, err := json.Marshal(string(asked))
		assert.NoError(t, err)
		io.WriteString(w, `{"results":[{"title":"asked","url":"https://a.example/","content":`+string(text)+`}]}`)
	})
	mux.HandleFunc("geocoding-api.open-meteo.com/v1/search", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"results":[{"name":"Oslo","latitude":59.91,"longitude":10.75,"country":"Norway","country_code":"NO","population":580000}]}`)
	})
	mux.HandleFunc("api.open-meteo.com/v1/forecast", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"timezone":"Europe/Oslo","current_units":{"temperature_2m":"°C"},"current":{"time":"2026-03-01T12:15","weather_code":71,"temperature_2m":-1.5},
			"daily":{"time":["2026-03-01"],"weather_code":[75],"temperature_2m_max":[0.5],"temperature_2m_min":[-4]}}`)
	})
	server := serve(t, mux, "www.example.com", "api.tavily.com", "geocoding-api.open-meteo.com", "api.open-meteo.com")
	grants := manifests.Grants{Secrets: []manifests.SecretGrant{secret(t, "TAVILY_API_KEY", "api.tavily.com")}, Network: []manifests.NetworkGrant{
		server.grant("www.example.com", "GET"), server.grant("api.tavily.com", "POST"), server.grant("geocoding-api.open-meteo.com", "GET"), server.grant("api.open-meteo.com", "GET"),
	}}
	for name, arguments := range map[string][]string{
		"fetch_page":  {`{"url":"https://www.example.com/","extract_type":"links"}`, `{"url":"https://www.example.com/","mode":"links"}`},
		"crawl_batch": {`{"urls":["https://www.example.com/"],"extract_type":"links"}`, `{"urls":["https://www.example.com/"],"mode":"links"}`},
		"web_search":  {`{"query":"x","max_results":3}`, `{"query":"x","count":3}`},
		"get_weather": {`{"city":"Oslo"}`, `{"place":"Oslo"}`},
	} {
		c := load(t, name, grants)
		record, other := c.call(arguments[0]), c.call(arguments[1])
		assert.True(t, record.Result.Success, record.Result.Error)
		assert.Equal(t, record.Result, other.Result)
		require.NotEmpty(t, other.Repairs)
		assert.Equal(t, "alias", other.Repairs[0].Rule)
	}
}
