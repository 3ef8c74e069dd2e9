package decode

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/noerr"
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
		assert.Equal(t, text, string(document), "the input is not changed")
	}
}

// TestTheStandardLibraryTakesWhatIsSimilar shows what this package is for.
func TestTheStandardLibraryTakesWhatIsSimilar(t *testing.T) {
	read := noerr.Decode[outer](t, []byte(`{"tool_calls":[{"name":"a"}],"Tool_Calls":[{"name":"b"}],"one":{"name":"a"},"one":{"raw":1}}`))
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

// TestASecondName: a field is read under its alias, in any spelling of JSON, and counts as one member under both names.
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
		assert.Equal(t, text, string(document), "the input is not changed")
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

// BenchmarkUnmarshal reads a short and a long response of a provider.
func BenchmarkUnmarshal(b *testing.B) {
	call := `{"name":"a","raw":{"path":"/project/main.go","text":"` + strings.Repeat(`package main\n`, 20) + `","from":1}}`
	for name, text := range map[string]string{
		"short": `{"tool_calls":[` + call + `],"size":"b","stranger":[1,2,3]}`,
		"long":  `{"tool_calls":[` + strings.Repeat(call+",", 999) + call + `],"size":"b"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Unmarshal([]byte(text), new(outer)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
