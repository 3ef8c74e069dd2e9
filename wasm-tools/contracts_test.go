package tools_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

// contracts are calls of tools with every parameter that the tools promise, and the members of the data that
// they must have. Those of tools that need a network are in network_test.go, of execute_python and execute_skill_script
// in internal/interpreters, and of the SQL tools, whose database is not text, in sql_test.go.
var contracts = []struct {
	tool, arguments string
	data            string // members that the data has, among others
}{
	{toolname.Thinking, `{"thought":"It may be the cache.","next_thought_needed":true,"thought_number":3,"total_thoughts":4,"is_revision":true,
		"revises_thought":1,"branch_from_thought":2,"branch_id":"cache","needs_more_thoughts":true}`,
		`{"thought_number":3,"total_thoughts":4,"next_thought_needed":true,"branches":["cache"]}`},
	{toolname.TodoWrite, `{"task":"Look","steps":[{"id":"a","description":"Read","status":"completed"},{"id":"b","description":"Write","status":"in_progress"},
		{"id":"c","description":"Check","status":"pending"}]}`, `{"counts":{"total":3,"completed":1,"in_progress":1,"pending":1}}`},
	{toolname.KnowledgeIndex, `{}`, `{"complete":true,"documents":4}`},
	{toolname.KnowledgeSearch, `{"queries":["tide table","opening hours"],"knowledge_base_ids":["docs"],"limit":50}`, `{"complete":true,"documents":1}`},
	{toolname.GrepChunks, `{"patterns":["tide table","nowhere"],"knowledge_base_ids":["docs"],"max_results":200}`, `{"truncated":false}`},
	{toolname.ListKnowledgeChunks, `{"knowledge_id":"docs/harbour.md","limit":100,"offset":0}`, `{"total":1}`},
	{toolname.GetDocumentInfo, `{"knowledge_ids":["docs/harbour.md","docs/none.md"]}`, `{}`},
	{toolname.QueryKnowledgeGraph, `{"query":"Ada","knowledge_base_ids":["graph"]}`,
		`{"relations":[{"subject":"Ada","predicate":"knows","object":"Charles","source":"graph/people.triples.tsv:1","depth":1}]}`},
	{toolname.DataSchema, `{"knowledge_id":"prices.csv"}`, `{"columns":[{"name":"code","type":"TEXT"},{"name":"price","type":"REAL"}],"row_count":2}`},
	{toolname.DataAnalysis, `{"knowledge_id":"prices.csv","sql":"SELECT sum(price) AS total FROM data"}`, `{"columns":["total"],"rows":[[34.45]],"truncated":false}`},
	{toolname.ReadSkill, `{"skill_name":"greet","file_path":"notes.txt"}`, `{"content":"be kind\n"}`},
	{toolname.FileWrite, `{"path":"new/note.txt","content":"hello","encoding":"utf-8","mode":"append"}`, `{"path":"new/note.txt"}`},
	{toolname.FileRead, `{"path":"notes.txt","encoding":"utf-8"}`, `{"content":"hello\n","truncated":false}`},
	{toolname.FileList, `{"path":".","pattern":"*.txt"}`, `{}`},
	{toolname.FileExists, `{"path":"none.txt"}`, `{"exists":false}`},
	{toolname.FileMkdir, `{"path":"a/b"}`, `{}`},
	{toolname.FileDelete, `{"path":"notes.txt"}`, `{}`},
	{toolname.Calculator, `{"expression":"2 + 2"}`, `{"value":4}`},
	{toolname.TextProcess, `{"text":"one two","operation":"count"}`, `{"words":2}`},
	{toolname.JSONProcess, `{"json_string":"{\"a\":1}","operation":"keys"}`, `{}`},
}

// TestToolsKeepTheirContracts: each tool is called with everything that its contract names, in a separate project.
func TestToolsKeepTheirContracts(t *testing.T) {
	rt := newRuntime(t, runtime.Options{})
	byName := map[string]*manifests.Manifest{}
	for _, m := range compiled(t) {
		byName[m.Name] = m
	}
	for _, c := range contracts {
		t.Run(c.tool, func(t *testing.T) {
			m := byName[c.tool]
			require.NotNil(t, m)
			project := manifests.Test{Context: map[string]string{"project_id": "demo"}, Files: map[string]string{}}
			for _, mount := range m.Permissions.Files {
				switch mount.Path.String() {
				case "/project":
					project.Files["/project/notes.txt"] = "hello\n"
					project.Files["/project/prices.csv"] = "code,price\ntea,4.5\npot,29.95\n"
					project.Files["/project/docs/harbour.md"] = "# Harbour\n\nThe tide table hangs beside the door. Opening hours are nine to five.\n"
					project.Files["/project/graph/people.triples.tsv"] = "Ada\tknows\tCharles\n"
				case "/skills":
					project.Files["/skills/greet/SKILL.md"] = "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n"
					project.Files["/skills/greet/notes.txt"] = "be kind\n"
				}
			}
			w, err := cases.Open(t.Context(), rt, m, project, t.TempDir())
			require.NoError(t, err)
			record, err := w.Call(t.Context(), json.RawMessage(c.arguments))
			require.NoError(t, err)
			require.True(t, record.Result.Success, record.Result.Error)
			var got, want map[string]any
			require.NoError(t, json.Unmarshal(record.Result.Data, &got))
			require.NoError(t, json.Unmarshal([]byte(c.data), &want))
			for name, value := range want {
				assert.Equal(t, value, got[name], name)
			}
		})
	}
}
