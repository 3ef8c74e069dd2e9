package exact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
)

type inner struct {
	Name string          `json:"name"`
	Raw  json.RawMessage `json:"raw"`
}

type embedded struct {
	Index *int `json:"index"`
	Size  int  `json:"size"`
}

type outer struct {
	embedded
	Calls   []inner          `json:"tool_calls"`
	One     *inner           `json:"one"`
	Size    string           `json:"size"` // hides that of embedded
	Kept    inner            `json:"kept"`
	ByName  map[string]inner `json:"by_name"`
	Skipped string           `json:"-"`
	Plain   bool
}

func TestUnmarshal(t *testing.T) {
	zero := 0
	for text, want := range map[string]outer{
		`{}`:   {},
		`null`: {},
		`{"tool_calls":[{"name":"a"}],"Tool_Calls":[{"name":"b"}]}`:                           {Calls: []inner{{Name: "a"}}},
		`{"Tool_Calls":[{"name":"b"}] , "tool_calls" : [ {"NAME":"c","name":"a"} ]}`:          {Calls: []inner{{Name: "a"}}},
		`{"TOOL_CALLS":[{"name":"b"}]}`:                                                       {},
		`{"tool_call\u017f":[{"name":"b"}]}`:                                                  {}, // a long s, which folds to s
		"{\"tool_call\u017f\":[{\"name\":\"b\"}]}":                                            {},
		`{"\u0054ool_calls":[{"name":"b"}],"\u0074ool_calls":[{"name":"a"}]}`:                 {Calls: []inner{{Name: "a"}}},
		`{"one":{"Name":"b","name":"a","raw":{"name":1,"name":2,"Raw":3}},"kept":{"NAME":1}}`: {One: &inner{"a", json.RawMessage(`{"name":1,"name":2,"Raw":3}`)}},
		`{"index":0,"Index":1,"size":"b","SIZE":7}`:                                           {embedded: embedded{Index: &zero}, Size: "b"},
		`{"stranger":{"name":"a","name":"b","tool_calls":1},"stranger":[],"Plain":true}`:      {Plain: true},
		`{"plain":true,"hidden":"a","Skipped":"b","-":"c"}`:                                   {},
		`{"by_name":{"A":{"name":"x","Name":"z"},"a":{"name":"y"}}}`:                          {ByName: map[string]inner{"A": {Name: "x"}, "a": {Name: "y"}}},
	} {
		var read outer
		document := []byte(text)
		require.NoError(t, Unmarshal(document, &read), text)
		assert.Equal(t, want, read, text)
		assert.Equal(t, text, string(document), "what is read is not changed")
	}
}

// TestTheStandardLibraryTakesWhatIsSimilar shows what this package is for.
func TestTheStandardLibraryTakesWhatIsSimilar(t *testing.T) {
	var read outer
	require.NoError(t, json.Unmarshal([]byte(`{"tool_calls":[{"name":"a"}],"Tool_Calls":[{"name":"b"}],"one":{"name":"a"},"one":{"raw":1}}`), &read))
	assert.Equal(t, "b", read.Calls[0].Name)
	assert.Equal(t, &inner{"a", json.RawMessage("1")}, read.One)
}

func TestWhatStandsTwiceIsRefused(t *testing.T) {
	for text, name := range map[string]string{
		`{"kept":{},"kept":null}`:                      "kept",
		`{"kept":{"name":"a","raw":1,"n\u0061me":""}}`: "name",
		`{"tool_calls":[{},{"raw":[],"raw":[]}]}`:      "raw",
		`{"index":1,"index":1}`:                        "index",
	} {
		var twice *jsontext.Error
		require.ErrorAs(t, Unmarshal([]byte(text), new(outer)), &twice, text)
		assert.Equal(t, jsontext.ErrRepeated, twice.Err)
		assert.EqualError(t, twice, `the name "`+name+`" occurs twice in one object`)
		assert.Equal(t, strings.LastIndex(text, `"`+name[:1]), twice.Offset)
	}
}

// TestASecondName: a field is read under its alias, in any spelling of JSON, and stands for one member under
// both names.
func TestASecondName(t *testing.T) {
	type named struct {
		FinishReason string         `json:"finishReason" alias:"finish_reason"`
		Args         map[string]int `json:"args"`
	}
	for text, want := range map[string]named{
		`{"finish_reason" :"a","args":{"finish_reason":1,"finishReason":2}}`: {"a", map[string]int{"finish_reason": 1, "finishReason": 2}},
		`{"finish\u005freason":"a"}`:                                         {FinishReason: "a"},
		`{"finishReason":"a","Finish_Reason":"b","FinishReason":"c"}`:        {FinishReason: "a"},
	} {
		var read named
		document := []byte(text)
		require.NoError(t, Unmarshal(document, &read), text)
		assert.Equal(t, want, read, text)
		assert.Equal(t, text, string(document), "what is read is not changed")
	}
	var twice *jsontext.Error
	require.ErrorAs(t, Unmarshal([]byte(`{"finishReason":"a","finish_reason":"b"}`), new(named)), &twice)
	assert.EqualError(t, twice, `the name "finish_reason" occurs twice in one object`)
}

func TestFaultsAreThoseOfTheStandardLibrary(t *testing.T) {
	for _, text := range []string{``, `{`, `{"kept":1}`, `[]`, `{"kept":{}}}`, `{"tool_calls":[1]}`, strings.Repeat(`{"one":`, 11_000)} {
		want := json.Unmarshal([]byte(text), new(outer))
		require.Error(t, want)
		assert.Equal(t, want, Unmarshal([]byte(text), new(outer)))
	}
}

// FuzzUnmarshal: it reads what the standard library reads, of a document without the members that
// are called like a field in all but case.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"tool_calls":[{"name":"a\u00e9","raw":[1,{"name":[]}]} , {}],"one":null,"size":"\\\"","index":-1.5e3,"by_name":{"":{}}}`))
	f.Add([]byte(`{"Tool_Calls":1,"kept":{"NAME":{}},"kept":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var read, want outer
		given := string(text)
		err := Unmarshal(text, &read)
		require.Equal(t, given, string(text))
		plain, refused := Plain(text, &read)
		if refused != nil {
			require.Equal(t, refused, err)
			return
		}
		require.Equal(t, json.Unmarshal(plain, &want), err)
		require.Equal(t, want, read)
		require.Equal(t, json.Valid(text), json.Valid(plain))
		if !strings.ContainsAny(given, `\`) && strings.ToLower(given) == given && !strings.ContainsFunc(given, func(r rune) bool { return r > 127 }) && !strings.Contains(given, "plain") {
			require.Equal(t, given, string(plain), "there is nothing to hide")
		}
	})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		" { \"b\" : [ 1.50 , {} ] ,\n\"a\" : \"\\u00e9<\" , \"c\":null} ": `{"b":[1.50,{}],"a":"\u00e9<","c":null}`,
		`[]`: `[]`, ` 1e400 `: `1e400`, `"x"`: `"x"`, `{"\u0061\"":true}`: `{"a\"":true}`,
	} {
		v, err := Parse([]byte(text), 3, 9)
		require.NoError(t, err, text)
		assert.Equal(t, want, string(v.Append(nil)))
	}
	for text, fault := range map[string]string{
		``: "unexpected end", `{} {}`: "after top-level value", `[[[[]]]]`: "nested deeper than 3 levels", `[1,2,3,4,5,6,7,8,9]`: "more than 9 values",
		`{"x":{"a":1,"\u0061":2}}`: `"a" occurs twice`,
	} {
		_, err := Parse([]byte(text), 3, 9)
		assert.ErrorContains(t, err, fault, text)
	}
	v, err := Parse([]byte(`{"t":["a","\u0062"],"n":1}`), 9, 9)
	require.NoError(t, err)
	assert.True(t, v.IsObject() && v.Get("t").IsList() && v.Get("t").HasText("b") && v.Get("t").Elements()[0].HasText("a"))
	assert.True(t, v.Get("x") == nil && !v.Get("x").IsList() && !v.Get("n").HasText("1") && v.Get("n").Literal() == "1")
	v.Set("n", List(String("<")))
	v.Set("z", Object())
	v.Delete("t")
	assert.Equal(t, `{"n":["<"],"z":{}}`, string(v.Append(nil)))
}

func TestTranscriptsDoNotBeginAsJSON(t *testing.T) {
	for document, first := range map[string]byte{"": 0, " \r\n": 0, "\uFEFF": 0, "{}": '{', "\uFEFF \n{": '{', "\t[1]": '['} {
		assert.Equal(t, first, First([]byte(document)), "%q", document)
		assert.False(t, IsTranscript([]byte(document)), "%q", document)
	}
	for _, document := range []string{"data: {}", ": comment\n", "\uFEFFevent: a", "\"text\"", "hello"} {
		assert.True(t, IsTranscript([]byte(document)), "%q", document)
	}
}

func TestLeadingValues(t *testing.T) {
	for document, want := range map[string][2]string{
		``: {``, ``}, `x`: {`x`, ``}, `{}`: {`{}`, ``}, `{"a":1} `: {`{"a":1} `, ``}, `{`: {`{`, ``}, `{}]`: {`{}]`, ``},
		"{\"a\":1}\n[2]\r\n3": {`{"a":1}`, "[2]\r\n3"}, `{}{}`: {`{}`, `{}`}, `1 x`: {`1`, `x`},
	} {
		value, rest := Leading([]byte(document))
		assert.Equal(t, want, [2]string{string(value), string(rest)}, document)
	}
}
