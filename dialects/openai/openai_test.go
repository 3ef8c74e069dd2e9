package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

// TestRowS22Transcript: each document of one conversation is read and written as it stands in testdata.
func TestRowS22Transcript(t *testing.T) {
	assert.Equal(t, "openai", New().Name())
	offered, findings, err := New().Definitions(definitions(), dialects.DefinitionOptions{})
	require.NoError(t, err)
	assert.Equal(t, compact(t, "definitions.json"), string(offered))
	assert.Empty(t, findings)

	response, err := New().Response(fixture(t, "weather.json"))
	require.NoError(t, err)
	assert.Equal(t, golden(), response)

	shown, err := written(t, response.ToolCalls)
	require.NoError(t, err)
	assert.Equal(t, compact(t, "calls.json"), string(shown))

	sent, err := New().Results(results())
	require.NoError(t, err)
	assert.Equal(t, compact(t, "results.json"), string(sent))
}

func TestStrictDefinitions(t *testing.T) {
	offered, findings, err := New().Definitions(definitions(), dialects.DefinitionOptions{Strict: true, Adapt: true})
	require.NoError(t, err)
	assert.JSONEq(t, string(fixture(t, "strict.json")), string(offered))
	for _, finding := range findings {
		assert.True(t, finding.Adapted, "%+v", finding)
	}
	again, _, err := New().Definitions(definitions(), dialects.DefinitionOptions{Strict: true, Adapt: true})
	require.NoError(t, err)
	assert.Equal(t, string(offered), string(again), "equal byte for byte, or the provider's cache misses")
}

func TestRowS24ResultsMatchCallsByID(t *testing.T) {
	records := results()
	records[0], records[2] = records[2], records[0]
	sent, err := New().Results(records)
	require.NoError(t, err)
	var messages []struct {
		ID      string `json:"tool_call_id"`
		Content string `json:"content"`
	}
	require.NoError(t, json.Unmarshal(sent, &messages))
	for i, message := range messages {
		assert.Equal(t, records[i].ID, message.ID)
		stored, err := json.Marshal(records[i])
		require.NoError(t, err)
		var wire struct{ Result string }
		require.NoError(t, json.Unmarshal(stored, &wire))
		assert.Equal(t, wire.Result, message.Content, "as in a record")
	}
}

func TestRowS25EmptyListsAreLists(t *testing.T) {
	offered, findings, err := New().Definitions(nil, dialects.DefinitionOptions{})
	require.NoError(t, err)
	assert.Equal(t, "[]", string(offered))
	assert.NotNil(t, findings)

	sent, err := New().Results(nil)
	require.NoError(t, err)
	assert.Equal(t, "[]", string(sent))
	shown, err := written(t, nil)
	require.NoError(t, err)
	assert.Equal(t, "[]", string(shown))

	response, err := New().Response(answer(`{"role":"assistant","content":"hello"}`, "stop"))
	require.NoError(t, err)
	assert.NotNil(t, response.ToolCalls)
	assert.Equal(t, tool.FinishStop, response.FinishReason)

	stream, pieces, err := chunks("stop", `{"content":"hello"}`)
	require.NoError(t, err)
	assert.Equal(t, []tool.Call{}, stream.Response().ToolCalls)
	assert.Equal(t, []tool.Call{}, New().Stream().Response().ToolCalls)
	for _, piece := range pieces {
		assert.NotNil(t, piece.ToolCalls)
		assert.NotNil(t, piece.KnowledgeReferences)
	}
}

func TestCustomCallsGoBothWays(t *testing.T) {
	calls := []tool.Call{custom("call_1", "shell", "ls | wc"), asked("call_2", "now", "")}
	shown, err := written(t, calls)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"id":"call_1","type":"custom","custom":{"name":"shell","input":"ls | wc"}},
		{"id":"call_2","type":"function","function":{"name":"now","arguments":""}}]`, string(shown))
	response, err := New().Response(answer(`{"content":null,"tool_calls":`+string(shown)+`}`, "tool_calls"))
	require.NoError(t, err)
	assert.Equal(t, calls, response.ToolCalls)
}

func TestWhatHasNoIDCannotBeWritten(t *testing.T) {
	_, err := New().Results([]tool.Record{{Call: asked("a", "now", "")}, {Call: asked("", "now", "")}})
	require.ErrorContains(t, err, "openai results: [1].id: is empty")
	_, err = written(t, []tool.Call{asked("", "now", "")})
	require.ErrorContains(t, err, "openai calls: [0].id: is empty")
}

func TestDefinitionsSayWhatIsRefused(t *testing.T) {
	_, findings, err := New().Definitions([]tool.Definition{
		{Name: "no spaces"}, {Name: strings.Repeat("x", 65)}, {Name: "twice"}, {Name: "twice"},
	}, dialects.DefinitionOptions{})
	require.NoError(t, err)
	require.Len(t, findings, 3)
	for i, name := range []string{"no spaces", strings.Repeat("x", 65), "twice"} {
		assert.Equal(t, name, findings[i].Tool)
		assert.Equal(t, "name", findings[i].Keyword)
		assert.Equal(t, dialects.Refused, findings[i].Severity)
	}
	_, _, err = New().Definitions([]tool.Definition{{Name: "a"}, {Name: "b", Parameters: json.RawMessage(`[]`)}}, dialects.DefinitionOptions{})
	require.ErrorContains(t, err, "openai definitions: [1].parameters: ")
}
