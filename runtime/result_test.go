package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

// FuzzReadResult: what is read member by member is what the standard library reads at once.
func FuzzReadResult(f *testing.F) {
	for _, text := range []string{
		`{"success":true,"output":"a","content":[{"type":"text","text":"b"}],"data":{"a":[1, 2]}}`, `{"success":true,"success":false}`,
		`{"\u0073uccess":true,"content":null}`, `{"success":true}{}`, `{"success":true,}`, `{"success":true]`, `[1]`, `null`, ``, `{"success":true,"content":[1]}`,
		`{"success":true,"content":{}}`, `{"success":true,"output":1}`, "{\"success\":true,\"\xff\":1}\n", `{"success":true,"content":[]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		result, err := readResult(t.Context(), text)
		var whole map[string]json.RawMessage
		if json.Unmarshal(text, &whole) != nil || whole["success"] == nil {
			require.Error(t, err)
			return
		}
		var want struct {
			Success bool
			Output  string
			Error   string
			Content []tool.Content
		}
		for name, into := range map[string]any{"success": &want.Success, "output": &want.Output, "error": &want.Error, "content": &want.Content} {
			if raw, ok := whole[name]; ok && json.Unmarshal(raw, into) != nil {
				require.Error(t, err)
				return
			}
		}
		require.NoError(t, err)
		assert.Equal(t, want.Success, result.Success)
		assert.Equal(t, want.Output, result.Output)
		assert.Equal(t, want.Content, result.Content)
	})
}

// TestReadResultStopsWithItsContext, whichever part of it is long.
func TestReadResultStopsWithItsContext(t *testing.T) {
	for name, text := range map[string]string{
		"many members": `{"success":true` + strings.Repeat(`,"a":1`, 1<<20) + "}",
		"many parts":   `{"success":true,"content":[` + strings.Repeat(`{"type":"text"},`, 1<<18) + `{"type":"text"}]}`,
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
