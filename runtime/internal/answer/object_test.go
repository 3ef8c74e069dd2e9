package answer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/tool"
)

// FuzzReadResult: reading piece by piece has the same result as the standard library.
func FuzzReadResult(f *testing.F) {
	for _, text := range []string{
		`{"success":true,"output":"a","content":[{"type":"text","text":"b"}],"data":{"a":[1, 2]}}`, `{"success":true,"success":false}`,
		`{"\u0073uccess":true,"content":null}`, `{"success":true}{}`, `{"success":true,}`, `{"success":true]`, `[1]`, `null`, ``, `{"success":true,"content":[1]}`,
		`{"a":1,"success":true,"b":[2, 3],"output":"c"}`, `{"success":false , "data":{"a":1},"b":null}`, `{"success":true,"error":"e","a":",}"}`,
		`{"success":true,"content":{}}`, "{\"success\":true,\"\xff\":1}\n", "{\"success\":true,\"a\":\"\x9c\xe6\"}", `{"success":true,"content":[]}`, `{"content":[{"type":"image","data":"AQI="},{}]}`,
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
			content, _, err := readContent(t.Context(), raw)
			require.Equal(t, wrong == nil, err == nil)
			if err == nil {
				assert.Equal(t, parts, content)
			}
		}
		if said, err := readObject(t.Context(), text); err == nil && said.leftOut == "" {
			compareData(t, want, said.Data)
		}
	})
}

// compareData checks that a result's data has the members that no other field of the result has, and those of "data".
// It may also have members that do not fit their fields.
func compareData(t *testing.T, members map[string]json.RawMessage, data json.RawMessage) {
	t.Helper()
	for _, name := range []string{"success", "output", "error", "message", "content"} {
		delete(members, name)
	}
	var inside map[string]json.RawMessage
	if json.Unmarshal(members["data"], &inside) == nil && inside != nil {
		delete(members, "data")
		maps.Copy(members, inside)
	}
	if len(members) == 0 || len(members) == 1 && members["data"] != nil {
		return // all of it, if there is any, is "data" itself
	}
	var got map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &got), "%s", data)
	fields := []string{"error", "message", "output", "content"}
	for name := range got {
		assert.True(t, members[name] != nil || slices.Contains(fields, name), name)
	}
	for name, value := range members {
		if name != "data" || string(value) != "null" {
			assert.JSONEq(t, strings.ToValidUTF8(string(value), "\uFFFD"), string(got[strings.ToValidUTF8(name, "\uFFFD")]), name)
		}
	}
}

// TestReadResultStopsWithItsContext, whichever part of it is long.
func TestReadResultStopsWithItsContext(t *testing.T) {
	for name, text := range map[string]string{
		"many members": manyMembers(1 << 18),
		"long parts":   `{"success":true,"content":[` + strings.Repeat(`{"type":"`+strings.Repeat("a", 5<<10)+`"},`, maxParts-1) + `{}]}`,
		"long data":    `{"success":true,"data":[` + strings.Repeat(`[1],`, 1<<18) + `1]}`,
	} {
		looks := &looked{Context: t.Context(), last: 1 << 30}
		_, err := readObject(looks, []byte(text))
		require.NoError(t, err, name)
		assert.GreaterOrEqual(t, looks.count, len(text)/longOutput, name)
		_, err = readObject(&looked{Context: t.Context(), last: looks.count / 2}, []byte(text))
		require.ErrorIs(t, err, context.Canceled, name)
	}
}

// manyMembers returns a result object with n members that are data.
func manyMembers(n int) string {
	var text strings.Builder
	text.WriteString(`{"success":true`)
	for i := range n {
		fmt.Fprintf(&text, `,"%d":1`, i)
	}
	return text.String() + "}"
}

// TestAttackManyParts: a result has at most maxParts parts, however short they are.
func TestAttackManyParts(t *testing.T) {
	for name, part := range map[string]string{"short": "{}", "long": `{"text":"` + strings.Repeat("a", longOutput/100) + `"}`} {
		with := func(parts int) ([]tool.Content, error) {
			result, err := readObject(t.Context(), []byte(`{"success":true,"content":[`+strings.Repeat(part+",", parts-1)+part+`]}`))
			return result.Content, err
		}
		content, err := with(maxParts)
		require.NoError(t, err, name)
		assert.Len(t, content, maxParts, name)
		_, err = with(maxParts + 1)
		require.ErrorIs(t, err, errParts, name)
	}
}

// looked is a context that ends after last calls of Err.
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

// TestFailuresStayFailures: whatever form the reason has, and whatever is wrong with the rest.
func TestFailuresStayFailures(t *testing.T) {
	for output, want := range map[string]tool.Result{
		`{"success":false,"error":{"code":3,"message":"boo"}}`:           {Error: "boo", Data: []byte(`{"error":{"code":3,"message":"boo"}}`)},
		`{"success":false,"error":{"message":"boo"}}`:                    {Error: "boo"},
		`{"success":false,"error":{"text":"boo"}}`:                       {Error: "boo"},
		`{"success":false,"error":{"code": 3}}`:                          {Error: `{"code":3}`},
		`{"success":false,"error":["a", "b"]}`:                           {Error: `["a","b"]`},
		`{"success":false,"error":7}`:                                    {Error: "7"},
		`{"success":"false","error":"boo"}`:                              {Error: "boo"},
		`{"success":"False","error":"boo"}`:                              {Error: "boo"},
		`{"success":0,"error":"boo"}`:                                    {Error: "boo"},
		`{"success":null,"error":"boo"}`:                                 {Error: "boo"},
		`{"success":false,"error":null,"message":"boo"}`:                 {Error: "boo"},
		`{"success":false,"error":{},"message":"boo"}`:                   {Error: "boo"},
		`{"success":false,"error":true,"message":"boo"}`:                 {Error: "boo", Data: []byte(`{"error":true}`)},
		`{"success":false,"error":"boo","message":"more"}`:               {Error: "boo", Data: []byte(`{"message":"more"}`)},
		`{"success":false,"error":"boo","output":5,"content":"x"}`:       {Error: "boo", Data: []byte(`{"output":5,"content":"x"}`)},
		`{"success":false,"error":"boo","data":{"a":1},"code":5}`:        {Error: "boo", Data: []byte(`{"a":1,"code":5}`)},
		`{"success":false,"message":{"code":5}}`:                         {Data: []byte(`{"message":{"code":5}}`)},
		`{"success":false,"error":"boo","data":{"a":1,"a":2}}`:           {Error: "boo"},
		`{"success":false,"error":"boo","n":1e999}`:                      {Error: "boo"},
		`{"success":true,"success":false,"error":"boo"}`:                 {Error: "boo"},
		`{"success":false,"error":"a \ud800"}`:                           {Error: "a \uFFFD"},
		`{"success":"true","data":[1],"error":false}`:                    {Success: true, Data: []byte(`[1]`)},
		`{"success":true,"error":{"message":"one is missing"},"n":1}`:    {Success: true, Data: []byte(`{"n":1,"error":{"message":"one is missing"}}`)},
		`{"success":true,"message":"all is well","output":"4 of 4 fit"}`: {Success: true, Output: "4 of 4 fit", Data: []byte(`{"message":"all is well"}`)},
	} {
		for _, mode := range []modules.Stdout{modules.StdoutAuto, modules.StdoutResult} {
			said, err := readOutput(t.Context(), mode, []byte(output))
			require.NoError(t, err, "%s: %s", mode, output)
			assert.Equal(t, want, said.Result, "%s: %s", mode, output)
		}
	}
}

// TestDataKeepsItsForm: members next to "data" are added to it, and those without a place are reported.
func TestDataKeepsItsForm(t *testing.T) {
	for output, want := range map[string][2]string{
		`{"success":true,"data":{"files":["a"]},"took_ms":3}`:          {`{"files":["a"],"took_ms":3}`, ""},
		`{"success":true,"data":{},"took_ms":3}`:                       {`{"took_ms":3}`, ""},
		`{"success":true,"a":1,"data":{"b":{"a":2}},"c":3}`:            {`{"b":{"a":2},"a":1,"c":3}`, ""},
		`{"success":true,"data":{"took_ms":1},"took_ms":3,"n":[1, 2]}`: {`{"took_ms":1,"n":[1,2]}`, `"took_ms"`},
		`{"success":true,"data":{"\u0061":1},"a":3}`:                   {`{"\u0061":1}`, `"a"`},
		`{"success":true,"data":[1],"took_ms":3}`:                      {`{"took_ms":3,"data":[1]}`, ""},
		`{"success":true,"data":null,"took_ms":3}`:                     {`{"took_ms":3}`, ""},
		`{"success":true,"data":"x"}`:                                  {`"x"`, ""},
		`{"success":true,"content":[{"Type":"text"},null,{"type":"image","mimeType":"image/png","data":"","n":1},{"type":"link","uri":"x"}]}`: {"", `"content[2].mimeType", "content[2].n", "content[3].uri"`},
		`{"success":true,"content":[{"uri":"x"}],"data":{"a":1},"a":2}`:                                                                       {`{"a":1}`, `"content[0].uri", "a"`},
	} {
		said, err := readObject(t.Context(), []byte(output))
		require.NoError(t, err, output)
		assert.Equal(t, want, [2]string{string(said.Data), said.leftOut}, output)
	}
}

// TestWhatIsWrongWithAResultObjectIsSaidInItsTerms: its author may not know Go.
func TestWhatIsWrongWithAResultObjectIsSaidInItsTerms(t *testing.T) {
	for output, want := range map[string]string{
		``:                                    "want a JSON object: it ends too early, at byte 0",
		`[]`:                                  "want a JSON object: it is not exactly one JSON object",
		`{"success":true,"output":{"a":1}}`:   `member "output": want a string, not a JSON object`,
		`{"success":true,"output":5}`:         `member "output": want a string, not a JSON number`,
		`{"success":true,"content":"x"}`:      `member "content": want a list of parts, not a JSON string`,
		`{"success":true,"content":{}}`:       `member "content": want a list of parts, not a JSON object`,
		`{"success":true,"content":[{},"x"]}`: `member "content": part 1: want an object, not a JSON string`,
		`{"success":true,"content":[{"text":1}]}`:                   `member "content": part 0: text: want a string, not a JSON number`,
		`{"success":true,"content":[{"type":"image","data":"@@"}]}`: `member "content": part 0: data: want base64`,
		`{"success":true,"content":[{"type":"image","data":{}}]}`:   `member "content": part 0: data: want a string in base64, not a JSON object`,
	} {
		_, err := readObject(t.Context(), []byte(output))
		assert.EqualError(t, err, want, output)
	}
}

// TestDataThatReadersDisagreeOn does not get to programs and providers.
func TestDataThatReadersDisagreeOn(t *testing.T) {
	deep := strings.Repeat("[", maxResultDepth+1) + strings.Repeat("]", maxResultDepth+1)
	for value, says := range map[string]string{
		`{"a":1,"a":2}`:              `the name "a" occurs twice in one object`,
		`[{"b":{"a":1,"\u0061":2}}]`: `the name "a" occurs twice in one object`,
		`{"\ud800":1,"\udbff":2}`:    "twice in one object",
		"{\"\xff\":1}":               "it has a key that is not valid UTF-8",
		`[1e999999]`:                 "it has the number 1e999999, which is too large",
		strings.Repeat("9", 400):     "which is too large",
		deep:                         "it is nested deeper than 64 levels",
		strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000): "it is nested deeper than 64 levels",
	} {
		_, err := readOutput(t.Context(), modules.StdoutJSON, []byte(value))
		require.ErrorContains(t, err, says, value)
		object := `{"success":true,"data":` + value + `}`
		for _, mode := range []modules.Stdout{modules.StdoutResult, modules.StdoutAuto} {
			_, err = readOutput(t.Context(), mode, []byte(object))
			require.ErrorContains(t, err, says, "%s: %s", mode, value)
		}
		said, err := readOutput(t.Context(), modules.StdoutAuto, []byte(value))
		require.NoError(t, err)
		assert.Equal(t, text([]byte(value)), said.Result, "any other output may be a text")
	}
	for value, want := range map[string]string{
		`"a\ud800"`: `"a\ufffd"`,
		`["\ud83c\udf27","\uDF27","\\ud800\ud83c"]`: `["\ud83c\udf27","\ufffd","\\ud800\ufffd"]`,
		`"\ud83c\ud83c\udf27\ud83cx"`:               `"\ufffd\ud83c\udf27\ufffdx"`,
		"[\"caf\xe9\"]":                             "[\"caf\uFFFD\"]",
		`1e308`:                                     `1e308`,
		strings.Repeat("9", 290):                    strings.Repeat("9", 290),
		deep[1 : len(deep)-1]:                       deep[1 : len(deep)-1],
	} {
		said, err := readOutput(t.Context(), modules.StdoutJSON, []byte(value))
		require.NoError(t, err, value)
		assert.Equal(t, want, string(said.Data))
	}
}
