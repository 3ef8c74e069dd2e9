package openaitest

import (
	"testing"

	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	api "github.com/caisson-run/caisson/dialects/responses"
)

func TestResponsesDefinitionsAreTheirs(t *testing.T) {
	for _, options := range []dialects.DefinitionOptions{{}, {Strict: true}} {
		definitions, _, err := api.New().Definitions(definitions(t), options)
		require.NoError(t, err)
		var functions, customs, shells int
		for _, offered := range accepted[[]responses.ToolUnionParam](t, definitions) {
			switch {
			case offered.OfFunction != nil:
				functions++
			case offered.OfCustom != nil:
				customs++
			case offered.OfLocalShell != nil:
				shells++
			}
		}
		assert.Greater(t, functions, 10)
		assert.Equal(t, []int{1, 1}, []int{customs, shells})
	}
}

func TestResponsesCallsAndResultsAreTheirs(t *testing.T) {
	results, err := api.New().Results(records())
	require.NoError(t, err)
	given := accepted[[]responses.ResponseInputItemUnionParam](t, results)
	require.Len(t, given, 4)
	assert.Equal(t, "call_1", given[0].OfFunctionCallOutput.CallID.Value)
	assert.Equal(t, "call_2", given[1].OfCustomToolCallOutput.CallID)
	assert.Equal(t, "call_3", given[2].OfLocalShellCallOutput.ID)
	assert.Equal(t, "call_4", given[3].OfFunctionCallOutput.CallID.Value)
	calls, err := api.New().Calls(calls())
	require.NoError(t, err)
	shown := accepted[[]responses.ResponseInputItemUnionParam](t, calls)
	require.Len(t, shown, 3)
	assert.Equal(t, "weather", shown[0].OfFunctionCall.Name)
	assert.Equal(t, "*** Begin", shown[1].OfCustomToolCall.Input)
	assert.Equal(t, []string{"ls"}, shown[2].OfLocalShellCall.Action.Command)
}
