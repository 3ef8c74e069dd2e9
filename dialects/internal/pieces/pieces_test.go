package pieces

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

func TestTextKeepsHalvesOfCharacters(t *testing.T) {
	for name, test := range map[string]struct {
		pieces []string // as JSON
		want   []string // what each completes, and the end
	}{
		"whole":                    {[]string{`"a😀"`, `"b"`}, []string{"a😀", "b", ""}},
		"split":                    {[]string{`"a\ud83d"`, `"\ude00b"`}, []string{"a", "😀b", ""}},
		"halves alone":             {[]string{`"\ud83d"`, `"\ude00"`}, []string{"", "😀", ""}},
		"nothing between":          {[]string{`"\ud83d"`, `""`, `null`, `"\ude00"`}, []string{"", "", "", "😀", ""}},
		"the first half is lost":   {[]string{`"a"`, `"\ude00b"`}, []string{"a", "\ufffdb", ""}},
		"the second half is lost":  {[]string{`"a\ud83d"`, `"b"`}, []string{"a", "\ufffdb", ""}},
		"two first halves":         {[]string{`"\ud83d"`, `"\ud83d"`, `"\ude00"`}, []string{"", "\ufffd", "😀", ""}},
		"at the end":               {[]string{`"a\ud83d"`}, []string{"a", "\ufffd"}},
		"both halves and a third":  {[]string{`"\ud83d\ude00\ud83d"`, `"\ude00"`}, []string{"😀", "😀", ""}},
		"an escaped backslash":     {[]string{`"a\\ud83d"`, `"\ude00"`}, []string{`a\ud83d`, "\ufffd", ""}},
		"two escaped backslashes":  {[]string{`"\\\\ud83d"`}, []string{`\\ud83d`, ""}},
		"three escaped":            {[]string{`"\\\ud83d"`, `"\ude00"`}, []string{`\`, "😀", ""}},
		"a replacement character":  {[]string{`"\ufffd"`, `"\ufffd"`}, []string{"\ufffd", "\ufffd", ""}},
		"a replacement and a half": {[]string{`"\ufffd\ud83d"`, `"\ude00\ufffd"`}, []string{"\ufffd", "😀\ufffd", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var halves Halves
			var got []string
			for _, piece := range test.pieces {
				text := noerr.Decode[Text](t, []byte(piece))
				got = append(got, halves.Add(text))
			}
			assert.Equal(t, test.want, append(got, halves.End()))
		})
	}
}

func TestTextIsAString(t *testing.T) {
	for literal, kind := range map[string]string{`{}`: "object", `[]`: "array", `1`: "number", `true`: "bool"} {
		var text Text
		var wrong *json.UnmarshalTypeError
		require.ErrorAs(t, json.Unmarshal([]byte(literal), &text), &wrong)
		assert.Equal(t, kind, wrong.Value)
	}
}

func TestArgumentsAreAnything(t *testing.T) {
	for literal, want := range map[string]string{`"{}"`: "{}", `null`: "", `{"a": 1.0}`: `{"a": 1.0}`, `[1]`: "[1]", `7.50`: "7.50", `false`: "false"} {
		arguments := noerr.Decode[Arguments](t, []byte(literal))
		assert.Equal(t, want, arguments.String())
	}
}

func TestReplacedPiecesAreForgotten(t *testing.T) {
	var c Call
	assert.Equal(t, "ab", c.Add(NewText("ab")))
	assert.Equal(t, 2, c.Len())
	c.Replace(NewText("{}"))
	assert.Equal(t, "{}", c.Whole().Function.Arguments)
}

func TestFillIDsIsStable(t *testing.T) {
	ids := func(given ...string) []string {
		calls := make([]tool.Call, len(given))
		for i, id := range given {
			calls[i].ID = id
		}
		FillIDs(calls)
		for i := range calls {
			given[i] = calls[i].ID
		}
		return given
	}
	assert.Equal(t, []string{"call_0", "call_1"}, ids("", ""))
	assert.Equal(t, []string{"call_1", "call_1_", "a", "a"}, ids("call_1", "", "a", "a"))
	assert.Equal(t, []string{"call_0_", "call_0", "call_2"}, ids("", "call_0", ""))
}

// FuzzText: a text that was cut into two pieces anywhere is joined again unchanged.
func FuzzText(f *testing.F) {
	f.Add("a😀\\ud83d", 2)
	f.Add("\\\\", 1)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		text = strings.ToValidUTF8(text, "?")
		units := utf16.Encode([]rune(text))
		if cut < 0 || cut > len(units) {
			cut = len(units) / 2
		}
		var halves Halves
		var got string
		for _, piece := range [][]uint16{units[:cut], units[cut:]} {
			var escaped strings.Builder
			for _, unit := range piece {
				if unit < 0x80 && unit >= ' ' && unit != '"' && unit != '\\' {
					escaped.WriteByte(byte(unit))
					continue
				}
				fmt.Fprintf(&escaped, `\u%04x`, unit)
			}
			read := noerr.Decode[Text](t, []byte(`"`+escaped.String()+`"`))
			got += halves.Add(read)
		}
		require.Equal(t, text, got+halves.End())
	})
}

// FuzzAnyText: no string is read other than encoding/json reads it.
func FuzzAnyText(f *testing.F) {
	f.Add([]byte(`"\ud83d\ude00\ud83d"`))
	f.Fuzz(func(t *testing.T, literal []byte) {
		var text Text
		var want *string
		if json.Unmarshal(literal, &text) != nil || json.Unmarshal(literal, &want) != nil || want == nil {
			return
		}
		require.Equal(t, *want, text.String())
	})
}
