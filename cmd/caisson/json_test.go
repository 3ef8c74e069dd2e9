package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

// TestAttackInvisibleJSON: no character that deceives whoever reads it is in JSON that is printed, and
// programs read what it was. Control: encoding/json prints nearly all of them as they are.
func TestAttackInvisibleJSON(t *testing.T) {
	var all, raw int
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !tool.Deceives(r) {
			continue
		}
		all++
		text := "a" + string(r) + "b"
		whole := text // inside of JSON that is handed on as it is
		if r < ' ' {
			whole = "JSON allows none of these in it"
		}
		value := map[string]any{text: []any{text, json.RawMessage(`{"nested":"` + whole + `"}`)}}
		printed, err := encoded(value)
		require.NoError(t, err)
		require.True(t, json.Valid(printed))
		require.False(t, bytes.ContainsFunc(printed, tool.Deceives), "%U in %s", r, printed)
		var read map[string]any
		require.NoError(t, json.Unmarshal(printed, &read))
		require.Equal(t, map[string]any{text: []any{text, map[string]any{"nested": whole}}}, read)
		careless, err := json.Marshal(text)
		require.NoError(t, err)
		if bytes.ContainsRune(careless, r) {
			raw++
		}
	}
	assert.Greater(t, all, 4000)
	assert.Greater(t, raw, all-100, "control")
}

// TestJSONStaysAsItIs: what deceives nobody is printed as it was, white space between values and bytes
// that are no UTF-8 among it.
func TestJSONStaysAsItIs(t *testing.T) {
	for _, text := range []string{"", "{\n\t\"a\": 1}\r\n", `"<&>é漢🙂"`, "\"\xff\"", `"\u202e"`} {
		assert.Equal(t, text, string(visible([]byte(text))))
	}
	assert.Equal(t, "\"\xff\\u202e\xfe\\udb40\\udc41\"", string(visible([]byte("\"\xff\u202e\xfe\U000e0041\""))))
}
