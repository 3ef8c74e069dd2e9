package jsontext_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/noerr"
)

var seeds = []string{
	`{}`, ` [ ] `, `"x"`, `1`, "\tnull\n", `true `, `[true,false,null,-1.5e+3,0,[ ],{ },"",{"a":[{"b":"c"}]}]`, `-0`, `01`, `1.`, `-`, `1e`, `.5`, `1E-2`,
	`{"a\"b":"\\","a\\":"\"}","\u0061":"\ud83d\ude00\ud800"}`, `{"\u0061":1,"a":2}`, `{"a":{"b":[1,{"c":1,"c":2}]}}`, `"é ü"`, `"\ud800\ud83d\ude00\b\f\n\r\t\/"`,
	`[1,]`, `[,1]`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `[1 2]`, `[1}`, `tru`, `nul`, `"\x"`, `"\u12g4"`, "\"\n\"", `"`, `"\`, `"\u12`, `{"a":1}]`, `1 2`, ``, ` `, "\xff", "\"\xff\"",
	strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65), `{"":{"":0}}`,
	`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":{},"i":10}`,
}

// FuzzRead: Read accepts the same texts as the standard library, and reads the same values.
func FuzzRead(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := jsontext.Read(t.Context(), text, jsontext.Limits{Depth: 10_000, Values: len(text) + 1, Repeated: true})
		require.Equal(t, json.Valid([]byte(text)), err == nil)
		if err != nil {
			require.NotNil(t, jsontext.FaultIn(text))
			require.True(t, errors.Is(err, jsontext.ErrSyntax) || errors.Is(err, jsontext.ErrBehind))
			return
		}
		require.Equal(t, strings.Trim(text, " \t\r\n"), doc.Root().Text())
		shallow := noerr.Get(jsontext.Read(t.Context(), text, jsontext.Limits{Depth: 10_000, Values: len(text) + 1, Repeated: true, Shallow: true}))(t)
		require.Equal(t, outermost(doc), outermost(shallow))
		if !utf8.ValidString(text) {
			return
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		repeated := same(t, decoder, doc, doc.Root())
		_, err = jsontext.Read(t.Context(), text, jsontext.Limits{Depth: 10_000, Values: len(text) + 1})
		require.Equal(t, repeated, err != nil)
	})
}

// outermost returns the texts of the elements, or of the names and members, of a document.
func outermost(doc *jsontext.Document) (texts []string) {
	for _, element := range doc.Root().Elements() {
		texts = append(texts, element.Text(), fmt.Sprint(element.Len()))
	}
	for name, member := range doc.Root().Members() {
		texts = append(texts, name.String(), member.Text(), fmt.Sprint(member.Len()))
	}
	return texts
}

// same compares a value with tokens, and reports whether it has a name twice.
func same(t *testing.T, tokens *json.Decoder, doc *jsontext.Document, v jsontext.Value) (repeated bool) {
	token := noerr.Get(tokens.Token())(t)
	start, end := v.Span()
	require.Equal(t, int(tokens.InputOffset()), map[bool]int{true: start + 1, false: end}[v.Kind() >= jsontext.Array])
	switch want := token.(type) {
	case nil:
		require.Equal(t, jsontext.Null, v.Kind())
	case bool:
		require.Equal(t, fmt.Sprint(want), v.Text())
		require.Equal(t, jsontext.Bool, v.Kind())
	case json.Number:
		require.Equal(t, string(want), v.Text())
		require.Equal(t, jsontext.Number, v.Kind())
	case string:
		require.Equal(t, want, v.String())
		require.Equal(t, jsontext.String, v.Kind())
	case json.Delim:
		count, names := 0, map[string]bool{}
		for i, element := range v.Elements() {
			require.Equal(t, count, i)
			count++
			repeated = same(t, tokens, doc, element) || repeated
		}
		for name, member := range v.Members() {
			count++
			key := noerr.Get(tokens.Token())(t)
			require.Equal(t, key, name.String())
			repeated = repeated || names[name.String()]
			names[name.String()] = true
			repeated = same(t, tokens, doc, member) || repeated
		}
		require.Equal(t, count, v.Len())
		noerr.Get(tokens.Token())(t)
	}
	return repeated
}

var errRefused = errors.New("refused")

func refusing(text string) func(string) error {
	return func(found string) error {
		if found == text {
			return errRefused
		}
		return nil
	}
}

func TestLimits(t *testing.T) {
	for text, want := range map[string]struct {
		limits jsontext.Limits
		err    error
		offset int
		path   []jsontext.Step
	}{
		`{"a":[{},{"b":1,"b":2}]}`: {jsontext.Limits{}, jsontext.ErrRepeated, 16, []jsontext.Step{{"a", -1}, {"", 1}, {"b", -1}}},
		`{"a":[[],[[]]]}`:          {jsontext.Limits{Depth: 3}, jsontext.ErrDepth, 10, []jsontext.Step{{"a", -1}, {"", 1}, {"", 0}}},
		`[1,{"a":2}]`:              {jsontext.Limits{Values: 4}, jsontext.ErrValues, 8, []jsontext.Step{{"", 1}, {"a", -1}}},
		`[1,[2,}]`:                 {jsontext.Limits{}, jsontext.ErrSyntax, 6, []jsontext.Step{{"", 1}}},
		`{"a":{"b":1}}`:            {jsontext.Limits{Name: refusing("b")}, errRefused, 6, []jsontext.Step{{"a", -1}, {"b", -1}}},
		`[1,{"a":23}]`:             {jsontext.Limits{Number: refusing("23")}, errRefused, 8, []jsontext.Step{{"", 1}, {"a", -1}}},
		`[1]`:                      {jsontext.Limits{Depth: -1}, jsontext.ErrLimits, 0, nil},
	} {
		_, err := jsontext.Read(t.Context(), text, want.limits)
		var located *jsontext.Error
		require.ErrorAs(t, err, &located, text)
		require.ErrorIs(t, err, want.err, text)
		assert.Equal(t, want.offset, located.Offset, text)
		assert.Equal(t, want.path, located.Path, text)
	}
}

func TestGet(t *testing.T) {
	doc := noerr.Get(jsontext.Read(t.Context(), `{"a":1,"\u0062":[2],"a":3}`, jsontext.Limits{Repeated: true}))(t)
	assert.Equal(t, "3", doc.Root().Get("a").Text())
	assert.Equal(t, "[2]", doc.Root().Get("b").Text())
	assert.Zero(t, doc.Root().Get("c"))
	assert.Zero(t, doc.Root().Get("a").Get("x"))
	none := doc.Root().Get("c")
	assert.Empty(t, none.Text()+none.String())
	assert.Zero(t, int(none.Kind())+none.Len())
}

// TestKeep: members that are not kept leave nothing in the document, whatever is in them.
func TestKeep(t *testing.T) {
	const text = `{"b":{"\u0062":1},"\u0061":[{"a":1}],"\u0062":2,"a":{"b":[3]},"c":4}`
	limits := jsontext.Limits{Shallow: true, Repeated: true, Values: 7, Keep: func(name string) bool { return name == "a" }}
	doc := noerr.Get(jsontext.Read(t.Context(), text, limits))(t)
	assert.Equal(t, []string{"a", `[{"a":1}]`, "1", "a", `{"b":[3]}`, "1"}, outermost(doc))
	assert.Equal(t, 2, doc.Root().Len())
}

// TestReadEndsWithItsContext also while it reads a long list.
func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, noerr.Error(jsontext.Read(ctx, `1`, jsontext.Limits{})), context.Canceled)
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		``: "it ends too early, at byte 0", ` `: "it ends too early, at byte 1", `{"a":[1,`: "it ends too early, at byte 8", `"abc`: "it ends too early, at byte 4", "{\n\"a\":\n": "it ends too early, at byte 7 (line 3, column 1)",
		`{"a":}`: "want a value, not '}', at byte 5", `{"a";1}`: "want a colon, not ';', at byte 4", `{a:1}`: "want a name in double quotes, not 'a', at byte 1", `{"a":1,}`: "want a name in double quotes, not '}', at byte 7",
		`[1 2]`: "want a comma or ], not '2', at byte 3", "{\"a\":1\n\"\u00e9\"": "want a comma or }, not '\"', at byte 7 (line 2, column 1)", `hello`: "want a value, not 'h', at byte 0", `tru `: "want a value, not 't', at byte 0", "\x1f\x8b": `want a value, not '\x1f', at byte 0`,
		"\xff": "want a value, not the byte 0xff, at byte 0", "{\"\u00e9\":\n \"\u00e9\" \u00e9": `want a comma or }, not '\u00e9', at byte 13 (line 2, column 6)`, "\"a\nb\"": `want an escape such as \n, not '\n', at byte 2`, `"\x"`: `want an escape such as \n or \u00e9 after the backslash, not 'x', at byte 2`,
		`-x`: "want a digit, not 'x', at byte 1", `{} {}`: "text follows the value, at byte 3", strings.Repeat("[", 10_001): "nested deeper than 10000 levels, at byte 10000",
	} {
		fault := jsontext.FaultIn(text)
		require.NotNil(t, fault, text)
		assert.Equal(t, want, fault.Error())
		assert.Equal(t, strings.HasPrefix(want, "it ends"), fault.Early, text)
	}
	assert.Nil(t, jsontext.FaultIn(`{"a":[1,{"a":2,"a":3}]} `))
}
