package runtime

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// FuzzReadResult: what is read piece by piece is what the standard library reads at once.
func FuzzReadResult(f *testing.F) {
	for _, text := range []string{
		`{"success":true,"output":"a","content":[{"type":"text","text":"b"}],"data":{"a":[1, 2]}}`, `{"success":true,"success":false}`,
		`{"\u0073uccess":true,"content":null}`, `{"success":true}{}`, `{"success":true,}`, `{"success":true]`, `[1]`, `null`, ``, `{"success":true,"content":[1]}`,
		`{"a":1,"success":true,"b":[2, 3],"output":"c"}`, `{"success":false , "data":{"a":1},"b":null}`, `{"success":true,"error":"e","a":",}"}`,
		`{"success":true,"content":{}}`, "{\"success\":true,\"\xff\":1}\n", `{"success":true,"content":[]}`, `{"content":[{"type":"image","data":"AQI="},{}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		wrong := json.Unmarshal(text, &want)
		doc, err := readJSON(t.Context(), text, jsontext.Limits{Values: len(text) + 1})
		require.Equal(t, wrong == nil && want != nil, err == nil && doc.Root().Kind() == jsontext.Object)
		if len(want) == 0 {
			return
		}
		for _, name := range []string{"success", "output", "error", "content", "data"} {
			assert.Equal(t, string(want[name]), doc.Root().Get(name).Text(), name)
		}
		if raw, ok := want["content"]; ok {
			var parts []tool.Content
			wrong := json.Unmarshal(raw, &parts)
			content, err := readContent(t.Context(), raw)
			require.Equal(t, wrong == nil, err == nil)
			if err == nil {
				assert.Equal(t, parts, content)
			}
		}
		if result, err := readResult(t.Context(), text); err == nil {
			compareData(t, want, result.Data)
		}
	})
}

// compareData checks that a result's data has the members that no other field of the result has. It
// may have "error" besides.
func compareData(t *testing.T, members map[string]json.RawMessage, data json.RawMessage) {
	t.Helper()
	for _, name := range []string{"success", "output", "error", "content"} {
		delete(members, name)
	}
	if len(members) == 0 || len(members) == 1 && members["data"] != nil {
		return // all of it, if there is any, is "data" itself
	}
	var got map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &got), "%s", data)
	for name := range got {
		assert.True(t, members[name] != nil || name == "error", name)
	}
	for name, value := range members {
		if name != "data" || string(value) != "null" {
			assert.JSONEq(t, string(value), string(got[name]), name)
		}
	}
}

// TestReadResultStopsWithItsContext, whichever part of it is long.
func TestReadResultStopsWithItsContext(t *testing.T) {
	for name, text := range map[string]string{
		"many members": `{"success":true` + strings.Repeat(`,"a":1`, 1<<20) + "}",
		"long parts":   `{"success":true,"content":[` + strings.Repeat(`{"type":"`+strings.Repeat("a", 5<<10)+`"},`, maxParts-1) + `{}]}`,
		"long data":    `{"success":true,"data":[` + strings.Repeat(`[1],`, 1<<20) + `1]}`,
	} {
		looks := &looked{Context: t.Context(), last: 1 << 30}
		_, err := readResult(looks, []byte(text))
		require.NoError(t, err, name)
		assert.GreaterOrEqual(t, looks.count, len(text)/longOutput, name)
		_, err = readResult(&looked{Context: t.Context(), last: looks.count / 2}, []byte(text))
		require.ErrorIs(t, err, context.Canceled, name)
	}
}

// TestAttackManyParts: a result has at most so many parts, however short they are.
func TestAttackManyParts(t *testing.T) {
	for name, part := range map[string]string{"short": "{}", "long": `{"text":"` + strings.Repeat("a", longOutput/100) + `"}`} {
		with := func(parts int) ([]tool.Content, error) {
			result, err := readResult(t.Context(), []byte(`{"success":true,"content":[`+strings.Repeat(part+",", parts-1)+part+`]}`))
			return result.Content, err
		}
		content, err := with(maxParts)
		require.NoError(t, err, name)
		assert.Len(t, content, maxParts, name)
		_, err = with(maxParts + 1)
		require.ErrorIs(t, err, errParts, name)
	}
}

// looked is a context that ends once it was asked so many times whether it has.
type looked struct {
	context.Context
	count, last int
}

func (l *looked) Err() error {
	if l.count++; l.count > l.last {
		return context.Canceled
	}
	return nil
}

// TestWritable: the directories that calls may write to are those that are asked for, granted and not
// bounded, for the context values at hand.
func TestWritable(t *testing.T) {
	spaces, data := t.TempDir(), t.TempDir()
	grants := manifests.Grants{Files: []manifests.FileGrant{
		{Path: "/project", Host: filepath.Join(spaces, "{project_id}"), Access: manifests.AccessReadWrite},
		{Path: "/data", Host: data, Access: manifests.AccessReadWrite},
		{Path: "/granted", Host: t.TempDir(), Access: manifests.AccessReadWrite},
		{Path: "/seen", Host: t.TempDir(), Access: manifests.AccessRead},
	}}
	m := manifest(t, probe, `permissions:
  files:
    - {path: /project, access: read-write}
    - {path: /data, access: read-write}
    - {path: /granted, access: read}
    - {path: /seen, access: read-write}
`)
	demo := map[string]string{"project_id": "demo"}
	tool := load(t, newRuntime(t, Options{}), m, grants)
	assert.ElementsMatch(t, []string{filepath.Join(spaces, "demo"), data}, tool.Writable(demo))
	assert.Equal(t, []string{data}, tool.Writable(nil), "such a call gets no project")
	assert.Equal(t, []string{data}, tool.Writable(map[string]string{"project_id": ".."}))
	grants.NoWrites = "strict"
	assert.Empty(t, load(t, newRuntime(t, Options{}), m, grants).Writable(demo))
}

const clientsTool = "schema: caisson/v1\nname: ask_user\ndescription: Ask the user.\nexecution: client\nbehavior: {destructive: true, final: true}\nrequires: [DESK]\n"

func clients(t *testing.T, text string) *manifests.Manifest {
	t.Helper()
	m, err := manifests.Parse("ask_user.tool.yaml", []byte(text))
	require.NoError(t, err)
	return m
}

// TestRowS4_1DefinitionsAreLoadedAndNotRun: a tool that the client runs is a tool in all but that it
// has no module, and that nobody runs it here.
func TestRowS4_1DefinitionsAreLoadedAndNotRun(t *testing.T) {
	r := newRuntime(t, Options{Settings: []string{"DESK"}})
	m := clients(t, clientsTool)
	require.Empty(t, Check(m))
	loaded := load(t, r, m, manifests.Grants{Ask: []string{"caisson.yaml:1"}, Approved: approvedBy("caisson.yaml:2", "")})
	assert.Same(t, m, loaded.Manifest())
	assert.Empty(t, loaded.Unavailable())
	assert.Empty(t, loaded.Decisions())
	assert.Zero(t, loaded.Limits(), "nothing here bounds its calls")
	assert.Empty(t, loaded.Asks(), "the client is told of each call")
	require.NoError(t, loaded.Prepare(t.Context()))

	isolation := isolationOf(t, loaded)
	assert.Equal(t, Isolation{Reason: "the client runs it"}, isolation)
	info := inspect(t, m)
	assert.Equal(t, ModuleInfo{Imports: []string{}, Exports: []string{}, SeededGenerators: []string{}, Unused: []string{}}, info)

	outcome, err := invoke(t, loaded, "{}")
	require.ErrorIs(t, err, tool.Denied)
	var failure *tool.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, failure.Message, outcome.Result.Error)
	assert.Equal(t, tool.Denied, outcome.Result.Kind)
	assert.Contains(t, outcome.Result.Error, "the client runs this tool")
	require.Len(t, outcome.Denials, 1)
	assert.Equal(t, "execution", outcome.Denials[0].Permission)
	require.NoError(t, loaded.Close(t.Context()))
}

// TestRowS4_1FinalResultsAreLoaded: whether a result may be shown as it is changes nothing of how it
// comes about.
func TestRowS4_1FinalResultsAreLoaded(t *testing.T) {
	m := manifest(t, probe, "behavior: {final: true}")
	require.Empty(t, Check(m))
	assert.True(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Manifest().Behavior.Final)
}

func TestToolOfAClientMayLackASetting(t *testing.T) {
	loaded := load(t, newRuntime(t, Options{}), clients(t, clientsTool), manifests.Grants{})
	assert.Equal(t, "needs the setting DESK", loaded.Unavailable())
}

func TestIdentityOfAToolOfAClient(t *testing.T) {
	r := newRuntime(t, Options{})
	m := clients(t, clientsTool)
	want := identityOf(t, r, m, manifests.Grants{})
	assert.Equal(t, want, identityOf(t, r, m, manifests.Grants{Approved: approvedBy("caisson.yaml:2", "ab")}), "no module is read for what is bound to one")
	assert.NotEqual(t, want, identityOf(t, r, clients(t, clientsTool+"parameters: {properties: {question: {type: string}}}\n"), manifests.Grants{}))
}
