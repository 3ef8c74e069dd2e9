package abi

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

func TestRefusedRequests(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, test := range []struct{ function, request, message string }{
		{request, ``, "the member method is missing"},
		{request, `{}`, "the member method is missing"},
		{request, `{"method":"GET"}`, "the member url is missing"},
		{request, `{"method":"GET","url":"u"}`, "the member headers is missing"},
		{request, `{"method":"GET","url":"u","headers":[],"body":"x"}`, `the member body is unknown; the members are headers, method, timeout_ms, url`},
		{request, `{"Method":"GET","url":"u","headers":[]}`, `the member Method is unknown`},
		{request, `{"method":"GET","url":"u","headers":[],"url":"v"}`, `the name "url" occurs twice`},
		{request, `{"method":"GET","url":"u","headers":[],"u\u0072l":"v"}`, `the name "url" occurs twice`},
		{request, `{"method":1,"url":"u","headers":[]}`, "the member method must be a string"},
		{request, `{"method":null,"url":"u","headers":[]}`, "the member method must be a string"},
		{request, `{"method":"GET","url":["u"],"headers":[]}`, "the member url must be a string"},
		{request, `{"method":"GET","url":"u","headers":null}`, "the member headers must be a list of pairs of strings"},
		{request, `{"method":"GET","url":"u","headers":{"a":"b"}}`, "the member headers must be a list of pairs of strings"},
		{request, `{"method":"GET","url":"u","headers":["a","b"]}`, "the member headers must be a list of pairs of strings"},
		{request, `{"method":"GET","url":"u","headers":[["a"]]}`, "the member headers must be a list of pairs of strings"},
		{request, `{"method":"GET","url":"u","headers":[["a","b","c"]]}`, "the member headers must be a list of pairs of strings"},
		{request, `{"method":"GET","url":"u","headers":[["a",null]]}`, "the member headers must be a list of pairs of strings"},
		{request, `{"method":"GET","url":"u","headers":[null]}`, "the member headers must be a list of pairs of strings"},
		{request, `{"method":"GET","url":"u","headers":[["a",1]]}`, "the member headers must be a list of pairs of strings"},
		{request, `{"method":"GET","url":"u","headers":` + deep + `}`, "nested deeper than 64 levels"},
		{request, `{"method":"GET","url":"u","headers":[],"timeout_ms":"1"}`, "the member timeout_ms must be a whole number"},
		{request, `{"method":"GET","url":"u","headers":[],"timeout_ms":-1}`, "the member timeout_ms must be a whole number"},
		{request, `{"method":"GET","url":"u","headers":[],"timeout_ms":1.5}`, "the member timeout_ms must be a whole number"},
		{request, `{"method":"GET","url":"u","headers":[],"timeout_ms":1e3}`, "the member timeout_ms must be a whole number"},
		{request, `{"method":"GET","url":"u","headers":[],"timeout_ms":4294967296}`, "the member timeout_ms must be a whole number"},
		{request, `{"method":"GET","url":"u","headers":[],"timeout_ms":null}`, "the member timeout_ms must be a whole number"},
		{request, `[]`, "want a JSON object"},
		{request, `null`, "want a JSON object"},
		{request, `{"method":"GET","url":"u","headers":[]} {}`, "text follows the JSON value"},
		{request, `{"method":"GET",`, "ends too early"},
		{request, "{\"method\":\"G\xffT\",\"url\":\"u\",\"headers\":[]}", "not valid UTF-8"},
		{send, `{"method":"GET","url":"u","headers":[],"id":1}`, `the member id is unknown`},
		{receive, `{}`, "the member id is missing"},
		{receive, `{"id":"1"}`, "the member id must be a whole number"},
		{receive, `{"id":-1}`, "the member id must be a whole number"},
		{receive, `{"id":18446744073709551616}`, "the member id must be a whole number"},
		{receive, `{"id":1,"timeout_ms":1}`, `the member timeout_ms is unknown; the members are id`},
		{get, `{"call_id":"1"}`, `the member call_id is unknown; the object has no members`},
		{get, `[]`, "want a JSON object"},
		{exists, `{}`, "the member name is missing"},
		{exists, `{"name":true}`, "the member name must be a string"},
		{exists, `{"name":"A","value":"x"}`, `the member value is unknown; the members are name`},
	} {
		refuses(t, test.function, test.request, test.message)
	}
}

// refuses checks that a request is refused for its form, and reaches nothing.
func refuses(t *testing.T, function, request, message string) {
	t.Helper()
	wire, tools, said := &answering{}, &caller{}, &speaker{}
	g := newGuest(t, &Session{Network: wire, Secrets: known{"A": true}, Tools: tools, Stream: said})
	status, response := g.call(function, request, nil)
	assert.Equal(t, statusInvalid, status, "%.100s", request)
	problem := parsed[struct{ Message string }](t, response).Message
	assert.Contains(t, problem, message, "%.100s", request)
	assert.Less(t, len(response), 500, "%.100s", request)
	assert.Empty(t, len(wire.requests)+len(wire.received)+len(tools.asked)+len(said.said), "%.100s", request)
	if function == emit {
		assert.Equal(t, []int{len(request)}, said.admitted, "reading it was work")
	}
}

func TestRequestsAreReadAsTheyAreWritten(t *testing.T) {
	var name string
	var id uint32
	var headers [][2]string
	err := decodeRequest(` { "id" : 4294967295 , "headers":[["a\u0000","\ud83d\ude00"],["",""]],"na\u006de":"" } `,
		decode.Members{"name": decode.Text(&name), "id": number(&id), "headers": pairs(&headers), "other": decode.Text(&name)}, "name", "id", "headers")
	require.NoError(t, err)
	assert.Empty(t, name)
	assert.Equal(t, uint32(4294967295), id)
	assert.Equal(t, [][2]string{{"a\x00", "😀"}, {"", ""}}, headers)
}

// FuzzDecode: the decoder never panics, refuses in words, and reads accepted requests as the standard library does.
func FuzzDecode(f *testing.F) {
	for _, text := range valid {
		f.Add(text)
	}
	f.Add(`{"method":"POST","url":"https://example.com/?a=b&c","headers":[["a","b"],["a","c"]],"timeout_ms":1500}`)
	f.Add(`{"method":"GET","url":"u","headers":[null,["a"]],"method":"x"}`)
	f.Fuzz(func(t *testing.T, input string) {
		var got struct {
			Method, URL string
			Headers     [][2]string
			Timeout     uint32
		}
		err := decodeRequest(input, decode.Members{
			"method": decode.Text(&got.Method), "url": decode.Text(&got.URL), "headers": pairs(&got.Headers), "timeout_ms": number(&got.Timeout),
		}, "method", "url", "headers")
		if err != nil {
			var refused problem
			require.True(t, errors.As(err, &refused))
			require.Equal(t, statusInvalid, refused.answer.status)
			require.True(t, json.Valid(refused.answer.head) && utf8.Valid(refused.answer.head))
			return
		}
		var want struct {
			Method  string      `json:"method"`
			URL     string      `json:"url"`
			Headers [][2]string `json:"headers"`
			Timeout uint32      `json:"timeout_ms"`
		}
		decoder := json.NewDecoder(strings.NewReader(input))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&want))
		assert.EqualValues(t, want, got)
	})
}

// FuzzCalls makes any calls with any parameters on a small memory: none may panic or end the guest, and the response of
// each must be readable.
func FuzzCalls(f *testing.F) {
	text := []byte(valid[request] + valid[exists] + valid[receive] + valid[toolCall] + valid[emit] + valid[get])
	f.Add(text, []byte{})
	at := func(function byte, params ...uint32) []byte {
		script := []byte{function}
		for i := range 4 {
			param := uint32(0)
			if i < len(params) {
				param = params[i]
			}
			script = binary.LittleEndian.AppendUint32(script, param)
		}
		return script
	}
	r, e := uint32(len(valid[request])), uint32(len(valid[exists]))
	f.Add(text, slices.Concat(at(1, 0, r, 5, 10), at(0, 0, 20), at(2, 0, r), at(3, r+e, uint32(len(valid[receive]))), at(0, 1<<31, 1<<31)))
	f.Add(text, slices.Concat(at(4, r, e), at(0, 3, 4), at(1, 1<<32-1, 1<<32-1, 1<<32-1, 1), at(0, 0, 1<<20)))
	f.Add(text, at(5, r+e+uint32(len(valid[receive])), uint32(len(valid[toolCall]))))
	behind := r + e + uint32(len(valid[receive])+len(valid[toolCall]))
	f.Add(text, slices.Concat(at(6, behind, uint32(len(valid[emit]))), at(7, behind+uint32(len(valid[emit])), 2), at(0, 0, 30)))
	functions := Functions()
	f.Fuzz(func(t *testing.T, memory, script []byte) {
		session := &Session{
			Network: &answering{id: 7, response: network.Response{Status: 200, Body: []byte("body")}},
			Secrets: known{"SEARCH_KEY": true}, MaxBody: 64,
			Tools:  &caller{record: tool.Record{Result: tool.Result{Success: true, Output: "done"}}},
			Stream: stream.Open(stream.Options{Bytes: 100}), About: func() About { return About{CallID: "1"} },
		}
		ctx := With(t.Context(), session)
		for ; len(script) >= 17; script = script[17:] {
			function := functions[int(script[0])%len(functions)]
			stack := make([]uint64, 4)
			for i := range stack {
				stack[i] = uint64(binary.LittleEndian.Uint32(script[1+4*i:]))
			}
			before := session.held
			require.NoError(t, function.Call(ctx, flat(memory), stack))
			checkResult(t, session, function, before, stack[0])
		}
	})
}

func checkResult(t *testing.T, session *Session, function hostfuncs.Function, before response, result uint64) {
	t.Helper()
	left := func(r response) int { return len(r.head) + len(r.body) }
	if function.Name == "read" {
		if result == outside {
			result = 0
		}
		require.Equal(t, left(before), left(session.held)+int(result))
		return
	}
	require.LessOrEqual(t, status(result>>32), statusUnavailable)
	require.Equal(t, left(session.held), int(uint32(result)))
}
