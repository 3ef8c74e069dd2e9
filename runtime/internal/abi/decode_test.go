package abi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRefusedRequests(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, test := range []struct{ function, request, message string }{
		{request, ``, "the member method is missing"},
		{request, `{}`, "the member method is missing"},
		{request, `{"method":"GET"}`, "the member url is missing"},
		{request, `{"method":"GET","url":"u"}`, "the member headers is missing"},
		{request, `{"method":"GET","url":"u","headers":[],"body":"x"}`, `unknown member "body"; the members are method, url, headers, timeout_ms`},
		{request, `{"Method":"GET","url":"u","headers":[]}`, `unknown member "Method"`},
		{request, `{"method":"GET","url":"u","headers":[],"url":"v"}`, `the key "url" stands twice`},
		{request, `{"method":"GET","url":"u","headers":[],"u\u0072l":"v"}`, `the key "url" stands twice`},
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
		{send, `{"method":"GET","url":"u","headers":[],"id":1}`, `unknown member "id"`},
		{receive, `{}`, "the member id is missing"},
		{receive, `{"id":"1"}`, "the member id must be a whole number"},
		{receive, `{"id":-1}`, "the member id must be a whole number"},
		{receive, `{"id":18446744073709551616}`, "the member id must be a whole number"},
		{receive, `{"id":1,"timeout_ms":1}`, `unknown member "timeout_ms"; the members are id`},
		{get, `{"call_id":"1"}`, `unknown member "call_id"; the request has none`},
		{get, `[]`, "want a JSON object"},
		{exists, `{}`, "the member name is missing"},
		{exists, `{"name":true}`, "the member name must be a string"},
		{exists, `{"name":"A","value":"x"}`, `unknown member "value"; the members are name`},
	} {
		wire := &answering{}
		g := newGuest(t, &Session{Network: wire, Secrets: known{"A": true}})
		status, response := g.call(test.function, test.request, nil)
		assert.Equal(t, statusInvalid, status, test.request)
		var problem struct{ Message string }
		require.NoError(t, json.Unmarshal([]byte(response), &problem))
		assert.Contains(t, problem.Message, test.message, test.request)
		assert.NotContains(t, problem.Message, "arguments", test.request)
		assert.Empty(t, wire.requests, test.request)
		assert.Empty(t, wire.received, test.request)
	}
}

func TestRequestsAreReadAsTheyAreWritten(t *testing.T) {
	var name string
	var id uint32
	var headers [][2]string
	err := decode(` { "id" : 4294967295 , "headers":[["a\u0000","\ud83d\ude00"],["",""]],"na\u006de":"" } `,
		field{name: "name", read: text(&name)},
		field{name: "id", read: number(&id)},
		field{name: "headers", read: pairs(&headers)},
		field{name: "other", read: text(&name), optional: true})
	require.NoError(t, err)
	assert.Empty(t, name)
	assert.Equal(t, uint32(4294967295), id)
	assert.Equal(t, [][2]string{{"a\x00", "😀"}, {"", ""}}, headers)
}

// FuzzDecode: the decoder never panics, refuses in words, and what it accepts is what the
// standard library reads.
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
		err := decode(input,
			field{name: "method", read: text(&got.Method)},
			field{name: "url", read: text(&got.URL)},
			field{name: "headers", read: pairs(&got.Headers)},
			field{name: "timeout_ms", read: number(&got.Timeout), optional: true})
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
