package caisson

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestArgumentsOfCalls: whatever JSON writes as an object goes to the host, numbers as they are
// written, and nothing else does.
func TestArgumentsOfCalls(t *testing.T) {
	const done = `{"call_id":"1","result":"{\"success\":true,\"data\":null}"}`
	type query struct {
		Text string `json:"text"`
	}
	for _, test := range []struct {
		arguments any
		request   string
	}{
		{nil, `{"name":"a","arguments":{}}`},
		{map[string]any{}, `{"name":"a","arguments":{}}`},
		{map[string]any{"b": 1}, `{"name":"a","arguments":{"b":1}}`},
		{query{"x"}, `{"name":"a","arguments":{"text":"x"}}`},
		{&query{"x"}, `{"name":"a","arguments":{"text":"x"}}`},
		{json.RawMessage(`{"n":1.50e400}`), `{"name":"a","arguments":{"n":1.50e400}}`},
	} {
		h := &host{response: []byte(done)}
		result, err := callTool(h.function("f"), "a", test.arguments)
		require.NoError(t, err)
		assert.Equal(t, &ToolResult{Success: true, CallID: "1"}, result)
		assert.Equal(t, []string{test.request}, h.requests)
	}
	for _, arguments := range []any{"text", 1, []int{1}, json.RawMessage(`{`), json.RawMessage(nil), (*query)(nil), func() {}, make(chan int)} {
		h := &host{response: []byte(done)}
		_, err := callTool(h.function("f"), "a", arguments)
		require.ErrorIs(t, err, Invalid)
		assert.Empty(t, h.requests)
	}
	h := &host{response: []byte(done)}
	_, err := callTool(h.function("f"), "a\xff", nil)
	require.ErrorIs(t, err, Invalid)
	assert.Empty(t, h.requests)
}

// FuzzToolResult: whatever the host answers, the SDK returns a result or an error.
func FuzzToolResult(f *testing.F) {
	f.Add(uint32(0), []byte(`{"call_id":"1","result":"{\"success\":false,\"error\":\"no\",\"kind\":\"denied\"}","denials":[{"permission":"files"}]}`))
	f.Add(uint32(1), []byte(`{"permission":"tools"}`))
	f.Add(uint32(3), []byte(`{"limit":"tool_calls","value":20,"message":"too many"}`))
	f.Fuzz(func(t *testing.T, status uint32, answer []byte) {
		h := host{status: Status(status), response: answer}
		result, err := callTool(h.function("f"), "a", nil)
		require.NotEqual(t, result == nil, err == nil)
		if err != nil {
			var failure *Error
			require.ErrorAs(t, err, &failure)
			require.NotEmpty(t, failure.Error())
		}
	})
}
