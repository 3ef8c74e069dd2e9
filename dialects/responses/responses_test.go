package responses

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

// TestRowS2_2Transcript: each document of one conversation is read and written as it stands in testdata.
func TestRowS2_2Transcript(t *testing.T) {
	assert.Equal(t, "responses", New().Name())
	offered, findings, err := New().Definitions(definitions(), dialects.DefinitionOptions{})
	require.NoError(t, err)
	assert.Equal(t, dialecttest.Compact(t, "definitions.json"), string(offered))
	assert.Empty(t, findings)

	response, err := New().Response(dialecttest.Fixture(t, "weather.json"))
	require.NoError(t, err)
	assert.Equal(t, golden(), response)

	shown, err := New().Calls(response.ToolCalls)
	require.NoError(t, err)
	assert.Equal(t, dialecttest.Compact(t, "calls.json"), string(shown))

	records := results()
	sent, err := New().Results(records)
	require.NoError(t, err)
	assert.Equal(t, dialecttest.Compact(t, "results.json"), string(sent))
	assert.Equal(t, results(), records, "the records are as they were")
}

func TestStrictDefinitions(t *testing.T) {
	offered, findings, err := New().Definitions(definitions(), dialects.DefinitionOptions{Strict: true})
	require.NoError(t, err)
	assert.JSONEq(t, string(dialecttest.Fixture(t, "strict.json")), string(offered))
	for _, finding := range findings {
		assert.True(t, finding.Adapted, "%+v", finding)
	}
	_, _, err = New().Definitions([]tool.Definition{{Name: "a", Parameters: json.RawMessage(`{`)}}, dialects.DefinitionOptions{Strict: true})
	require.ErrorContains(t, err, "responses definitions: [0].parameters: ")
}

func TestEmptyArgumentsAreWritten(t *testing.T) {
	shown, err := New().Calls([]tool.Call{dialecttest.Call("a", "f", ""), dialecttest.Custom("b", "g", "")})
	require.NoError(t, err)
	assert.Equal(t, `[{"type":"function_call","call_id":"a","name":"f","arguments":""},{"type":"custom_tool_call","call_id":"b","name":"g","input":""}]`, string(shown))
}

func TestFilesHaveNames(t *testing.T) {
	pdf := func(name string) tool.Record {
		return tool.Record{Call: dialecttest.Call("a", "f", ""), Result: tool.Result{Success: true, Content: []tool.Content{{Type: "file", Name: name, MIMEType: "application/pdf", Data: []byte("%PDF")}}}}
	}
	sent, err := New().Results([]tool.Record{pdf(""), pdf("plan.pdf")})
	require.NoError(t, err)
	assert.Contains(t, string(sent), `{"type":"input_file","filename":"file.pdf","file_data":"data:application/pdf;base64,JVBERg=="}`)
	assert.Contains(t, string(sent), `{"type":"input_file","filename":"plan.pdf","file_data":"data:application/pdf;base64,JVBERg=="}`)
}

func TestOnlyLinksThatTheProviderCanFollowAreParts(t *testing.T) {
	record := tool.Record{Call: dialecttest.Call("a", "f", ""), Result: tool.Result{Success: true, Content: []tool.Content{{Type: "image", MIMEType: "image/png", URL: "file:///etc/passwd"}}}}
	sent, err := New().Results([]tool.Record{record})
	require.NoError(t, err)
	assert.NotContains(t, string(sent), "input_image")
}
