package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// FuzzReadResult: what is read piece by piece is what the standard library reads at once.
func FuzzReadResult(f *testing.F) {
	for _, text := range []string{
		`{"success":true,"output":"a","content":[{"type":"text","text":"b"}],"data":{"a":[1, 2]}}`, `{"success":true,"success":false}`,
		`{"\u0073uccess":true,"content":null}`, `{"success":true}{}`, `{"success":true,}`, `{"success":true]`, `[1]`, `null`, ``, `{"success":true,"content":[1]}`,
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
	})
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
