package replay

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

func inputs(t testing.TB, steps string) json.RawMessage {
	t.Helper()
	text, err := Inputs{Limits: Limits{Memory: 1, Output: 2, Stderr: 3}, Image: &Image{Seed: make([]byte, 32), Clock: 4}, Steps: 5}.Encode([]byte(steps))
	require.NoError(t, err)
	return text
}

func TestInputs(t *testing.T) {
	in, steps, err := Decode(inputs(t, "the steps"))
	require.NoError(t, err)
	assert.Equal(t, "the steps", string(steps))
	assert.EqualValues(t, 4, in.Image.Clock)
	assert.JSONEq(t, `{"bytes":`+text(len(inputs(t, "the steps")))+`,"steps":5}`, string(Summarize(inputs(t, "the steps"))))
	assert.Nil(t, Summarize(nil))
	assert.JSONEq(t, `{"bytes":1,"steps":0}`, string(Summarize(json.RawMessage("{"))))
}

func text(value any) string {
	encoded, _ := json.Marshal(value)
	return string(encoded)
}

// TestAttackInputsThatGrow: inputs that are small and become large are refused, not held. The control is at the bound.
func TestAttackInputsThatGrow(t *testing.T) {
	bomb := inputs(t, strings.Repeat("\x00", 2*MaxBytes+1))
	assert.Less(t, len(bomb), 200<<10)
	_, _, err := Decode(bomb)
	assert.ErrorContains(t, err, "more than 16777216 bytes")
	_, steps, err := Decode(inputs(t, strings.Repeat("\x00", 2*MaxBytes)))
	assert.NoError(t, err, "control")
	assert.Len(t, steps, 2*MaxBytes)
}

func TestCompare(t *testing.T) {
	one, two := int64(1), int64(2)
	result := tool.Result{Success: true, Output: "a", Data: json.RawMessage(`{"a":1}`), Content: []tool.Content{{Type: "image", Data: []byte{1}}}}
	assert.Empty(t, Compare(result, result, &one, &one))
	other := tool.Result{Output: "b", Data: json.RawMessage(`{"a":1.0}`), Kind: tool.Trap, Error: "c"}
	var parts []string
	for _, d := range Compare(result, other, &one, &two) {
		parts = append(parts, d.Part)
	}
	assert.Equal(t, []string{"success", "kind", "error", "output", "data", "content", "fuel"}, parts)
	assert.Equal(t, []Difference{{"fuel", "1", "null"}}, Compare(result, result, &one, nil))
	assert.Empty(t, Compare(tool.Result{Kind: tool.ToolFailed, Error: "the executor's words"}, tool.Result{Kind: tool.ToolFailed}, nil, nil))
}

// FuzzDecode: what is no inputs is refused.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(inputs(f, "the steps")))
	f.Add([]byte(`{"version":1,"limits":{"memory":1,"output":1,"stderr":1},"log":"AAAA"}`))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		_, steps, err := Decode(encoded)
		if err != nil {
			var refusal *Refusal
			require.ErrorAs(t, err, &refusal)
			return
		}
		assert.LessOrEqual(t, len(steps), 2*MaxBytes)
	})
}
