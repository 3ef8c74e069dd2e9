package abi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/tool"
)

func TestRefusedEmissions(t *testing.T) {
	deep := strings.Repeat("[", tool.MaxArgumentsDepth) + strings.Repeat("]", tool.MaxArgumentsDepth)
	for _, test := range []struct{ request, message string }{
		{``, "the member type is missing"},
		{`{}`, "the member type is missing"},
		{`{"text":"a"}`, "the member type is missing"},
		{`{"type":1}`, "the member type must be a string"},
		{`{"Type":"text","text":"a"}`, `the member Type is unknown; the members are data, fraction, mime_type, partial, text, type`},
		{`{"type":"text","text":"a","call_id":"another"}`, `the member call_id is unknown`},
		{`{"type":"text","text":"a","batch":"another"}`, `the member batch is unknown`},
		{`{"type":"text","text":"a","text":"b"}`, `the name "text" occurs twice`},
		{`{"type":"text","text":"a","te\u0078t":"b"}`, `the name "text" occurs twice`},
		{`{"type":"json","data":{"a":1,"a":2}}`, `the name "a" occurs twice`},
		{`{"type":"text","text":null}`, "the member text must be a string"},
		{`{"type":"progress","fraction":"1"}`, "the member fraction must be a number from 0 to 1"},
		{`{"type":"progress","fraction":null}`, "the member fraction must be a number from 0 to 1"},
		{`{"type":"progress","fraction":1e999}`, "the member fraction must be a number from 0 to 1"},
		{`{"type":"image","data":"AAAA","mime_type":1}`, "the member mime_type must be a string"},
		{`{"type":"image","data":"AAAA","mime_type":"image/png","partial":"yes"}`, "the member partial must be true or false"},
		{`{"type":"image","data":"AAAA","mime_type":"image/png","partial":null}`, "the member partial must be true or false"},
		{`{"type":"json","data":` + deep + `}`, "nested deeper than 64 levels"},
		{`{"type":"json","data":` + strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19-30) + `}`, ""},
		{`[]`, "want a JSON object"},
		{`{"type":"text","text":"a"}{}`, "text follows the JSON value"},
		{"{\"type\":\"text\",\"text\":\"\xff\"}", "not valid UTF-8"},
	} {
		refuses(t, emit, test.request, test.message)
	}
}

// TestSizesOfEmissions: a request that is longer than the call's limit, or than any limit, is not read.
func TestSizesOfEmissions(t *testing.T) {
	filled := func(bytes int) string {
		return `{"type":"text","text":"` + strings.Repeat("a", bytes-len(`{"type":"text","text":""}`)) + `"}`
	}
	for _, test := range []struct {
		name     string
		limit    int
		request  string
		status   status
		response string
		admitted int
	}{
		{"the longest", 0, filled(1 << 20), statusOK, "", 1 << 20},
		{"a longer one", 0, filled(1<<20 + 1), statusLimit, `{"limit":"request_bytes","value":1048576}`, 0},
		{"the longest of a call", 100, filled(100), statusOK, "", 100},
		{"a longer one of it", 100, filled(101), statusLimit, `{"limit":"output","value":100}`, 0},
		{"one that nobody could read", 100, strings.Repeat("[", 101), statusLimit, `{"limit":"output","value":100}`, 0},
	} {
		said := &speaker{limit: test.limit}
		status, response := newGuest(t, &Session{Stream: said}).call(emit, test.request, nil)
		assert.Equal(t, test.status, status, test.name)
		assert.Equal(t, test.response, response, test.name)
		if test.admitted == 0 {
			assert.Empty(t, said.admitted, test.name)
			continue
		}
		assert.Equal(t, []int{test.admitted}, said.admitted, test.name)
		require.Len(t, said.said, 1, test.name)
	}
}

// TestEmissionsThatEndTheGuest: there is nothing left to tell it.
func TestEmissionsThatEndTheGuest(t *testing.T) {
	bug := errors.New("a bug")
	for _, err := range []error{bug, &hostfuncs.Error{Op: "emit", Kind: hostfuncs.ErrHost, Message: "the emission could not be shown"}} {
		_, _, got := newGuest(t, &Session{Stream: &speaker{err: err}}).try(emit, valid[emit], nil)
		assert.ErrorIs(t, got, err)
	}
}

// TestContextIsWrittenOnce: the context has only the members that it was given, however their values are spelled.
func TestContextIsWrittenOnce(t *testing.T) {
	asked := 0
	g := newGuest(t, &Session{About: func() About {
		asked++
		return About{
			CallID: "1", Tool: "a", Context: map[string]string{"b": `","user":"root`, "a": "x\xffy\x00</script>\u2028"},
			Files: []tool.File{{Name: "\"},{\"path\":\"/etc/passwd", Path: "/files/a", Bytes: 3}},
		}
	}})
	const want = `{"call_id":"1","tool":"a","context":{"a":"x\ufffdy\u0000</script>\u2028","b":"\",\"user\":\"root"},` +
		`"files":[{"name":"\"},{\"path\":\"/etc/passwd","path":"/files/a","bytes":3}]}`
	for range 3 {
		status, response := g.call(get, ` { } `, nil)
		assert.Equal(t, statusOK, status)
		assert.Equal(t, want, response)
	}
	assert.Equal(t, 1, asked)
}

// FuzzEmit: a shown emission is an object with just these members, also for the standard library. It is valid, and does
// not keep the request alive. The guest's answer depends only on the request, not on whether the call has a listener.
func FuzzEmit(f *testing.F) {
	f.Add(valid[emit])
	f.Add(`{"type":"progress","fraction":0.5,"text":"\u001b[2J"}`)
	f.Add(` {"type":"image","data":"AAA\/","mime_type":"image/png" , "partial":true}`)
	f.Add(`{"type":"json","data":{"a":[null,1.50e400,"\ud800"]}}`)
	f.Add(`{"type":"link","data":"https://example.com/","text":"x"}`)
	f.Add(`{"type":"text","text":"a","text":"b"}`)
	f.Add(`{"type":"text","text":"a","call_id":"b"}`)
	f.Fuzz(func(t *testing.T, request string) {
		var said []tool.Emission
		watched := stream.Open(stream.Options{Emit: func(e tool.Emission) error {
			said = append(said, e)
			return nil
		}})
		g := newGuest(t, &Session{Stream: watched})
		ended, response := g.call(emit, request, nil)
		again, responseAgain := newGuest(t, &Session{Stream: stream.Open(stream.Options{})}).call(emit, request, nil)
		require.Equal(t, ended, again)
		require.Equal(t, response, responseAgain)
		if ended != statusOK {
			require.Contains(t, []status{statusInvalid, statusLimit}, ended)
			require.True(t, json.Valid([]byte(response)) && utf8.ValidString(response))
			require.Empty(t, said)
			return
		}
		require.Empty(t, response)
		require.Len(t, said, 1)
		got := said[0]
		require.NoError(t, got.Check())
		require.LessOrEqual(t, len(got.Text)+len(got.Data)+len(got.MIMEType), len(request))
		before := string(got.Data)
		clear(g.memory)
		require.Equal(t, before, string(got.Data))
		require.LessOrEqual(t, cap(got.Data), 2*len(got.Data)+64)

		var want tool.Emission
		decoder := json.NewDecoder(strings.NewReader(request))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&want))
		require.Equal(t, want, got)
	})
}
