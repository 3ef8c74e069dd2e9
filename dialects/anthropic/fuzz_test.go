package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

// sound fails unless what was read can be passed on, and the failure is of the one type.
func sound(t *testing.T, response tool.ChatResponse, err error) {
	t.Helper()
	if err != nil {
		var typed *dialects.Error
		require.ErrorAs(t, err, &typed)
		require.NotEmpty(t, typed.Message)
		return
	}
	require.NotNil(t, response.ToolCalls)
	for _, call := range response.ToolCalls {
		require.NotEmpty(t, call.ID)
		require.NotEmpty(t, call.Function.Name)
		require.LessOrEqual(t, len(call.Function.Arguments), dialects.MaxArguments)
	}
	require.True(t, json.Valid([]byte(dialecttest.Calls(t, New(), response.ToolCalls...))))
}

func FuzzResponse(f *testing.F) {
	f.Add(dialecttest.Fixture(f, "parallel.json"))
	f.Add([]byte(`{"content":[{"type":"tool_use","name":"f","input":"{"},{"type":"text","text":"\ud83d"}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		response, err := New().Response(document)
		sound(t, response, err)
	})
}

// FuzzStream takes one event from each line.
func FuzzStream(f *testing.F) {
	seed := strings.Builder{}
	for line := range strings.Lines(string(dialecttest.Fixture(f, "parallel.sse"))) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			seed.WriteString(data)
		}
	}
	f.Add(seed.String())
	f.Add(addedArguments(0, []uint16{'{', 0xd83d}) + "\n" + startedCall(0, "") + "\n" + reason("max_tokens") + "\n" + messageStop)
	f.Fuzz(func(t *testing.T, text string) {
		stream := New().Stream()
		pieces, err := dialecttest.Feed(stream, dialecttest.Data(strings.Split(text, "\n")...))
		sound(t, stream.Response(), err)
		for _, piece := range pieces {
			require.NotNil(t, piece.ToolCalls)
			require.True(t, piece.Data == nil || json.Valid(piece.Data))
		}
		if err == nil {
			require.ElementsMatch(t, stream.Response().ToolCalls, dialecttest.Called(pieces))
			require.True(t, pieces[len(pieces)-1].Done)
		}
	})
}
