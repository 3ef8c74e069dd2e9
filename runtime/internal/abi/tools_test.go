package abi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

func calling(arguments string) string { return `{"name":"a","arguments":` + arguments + `}` }

func TestRefusedCallsOfTools(t *testing.T) {
	deep := strings.Repeat(`{"a":`, tool.MaxArgumentsDepth+1) + "1" + strings.Repeat("}", tool.MaxArgumentsDepth+1)
	for _, test := range []struct{ request, message string }{
		{``, "not JSON"},
		{`{}`, "the member name is missing"},
		{`{"name":"a"}`, "the member arguments is missing"},
		{`{"arguments":{}}`, "the member name is missing"},
		{`{"name":1,"arguments":{}}`, "the member name must be a string"},
		{`{"name":null,"arguments":{}}`, "the member name must be a string"},
		{`{"Name":"a","arguments":{}}`, `the member Name is unknown; the members are arguments, name`},
		{`{"name":"a","arguments":{},"tenant":"b"}`, `the member tenant is unknown`},
		{`{"name":"a","arguments":{},"name":"b"}`, `the name "name" occurs twice`},
		{`{"name":"a","arguments":{},"n\u0061me":"b"}`, `the name "name" occurs twice`},
		{calling(`[]`), "must be an object of arguments"},
		{calling(`null`), "must be an object of arguments"},
		{calling(`"{}"`), "must be an object of arguments"},
		{calling(`1`), "must be an object of arguments"},
		{calling(`{"b":1,"b":2}`), `the name "b" occurs twice`},
		{calling(`{"b":{"c":1,"\u0063":2}}`), `the name "c" occurs twice`},
		{calling("{\"b\u202e\":1}"), "must be an object of arguments"},
		{calling(deep), "nested deeper than 64 levels"},
		{calling(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), "not JSON"},
		{calling(`{}`) + `{}`, "not JSON"},
		{`[]`, "not a JSON object"},
		{`null`, "not a JSON object"},
		{`{"name":"a","arguments":{}`, "not JSON"},
		{"{\"name\":\"\xff\",\"arguments\":{}}", "not valid UTF-8"},
		{calling("{\"b\":\"\xff\"}"), "not valid UTF-8"},
	} {
		refuses(t, toolCall, test.request, test.message)
	}
}

// TestArgumentsKeepTheirText: order, numbers and white space are the other tool's to read. An
// object may be as deep as any arguments.
func TestArgumentsKeepTheirText(t *testing.T) {
	deep := strings.Repeat(`{"a":`, tool.MaxArgumentsDepth) + "1" + strings.Repeat("}", tool.MaxArgumentsDepth)
	for _, arguments := range []string{`{}`, `{ "z" : 1.50e+400 , "a":-0 }`, "{\n\t\"\u00fc\":\"\\u00fc\"}", deep} {
		for _, request := range []string{calling(arguments), ` { "arguments" : ` + arguments + ` , "n\u0061me" : "a" } `} {
			tools := &caller{}
			status, response := newGuest(t, &Session{Tools: tools}).call(toolCall, request, nil)
			require.Equal(t, statusOK, status, response)
			assert.Equal(t, [][2]string{{"a", arguments}}, tools.asked)
		}
	}
}

// TestSizesOfCalls: name and arguments together have the limit of any request.
func TestSizesOfCalls(t *testing.T) {
	long := func(bytes int) string {
		return calling(`{"a":"` + strings.Repeat("x", bytes-len(calling(`{"a":""}`))) + `"}`)
	}
	tooLong := fmt.Sprintf(`{"limit":"request_bytes","value":%d}`, 256<<10)
	for _, test := range []struct {
		name, request string
		status        status
		response      string
	}{
		{"the longest arguments", long(256 << 10), statusOK, ""},
		{"longer ones", long(256<<10 + 1), statusLimit, tooLong},
		{"as long as a model's may be", long(tool.MaxArgumentsBytes), statusLimit, tooLong},
		{"the longest request", calling(`{}`) + strings.Repeat(" ", 256<<10-len(calling(`{}`))), statusOK, ""},
		{"a longer one", calling(`{}`) + strings.Repeat(" ", 256<<10+1-len(calling(`{}`))), statusLimit, tooLong},
	} {
		tools := &caller{}
		g := newGuest(t, &Session{Tools: tools})
		g.memory = make(flat, 8<<20)
		status, response := g.call(toolCall, test.request, nil)
		assert.Equal(t, test.status, status, test.name)
		assert.Contains(t, response, test.response, test.name)
		assert.Len(t, tools.asked, map[bool]int{true: 1, false: 0}[test.status == statusOK], test.name)
	}
}

// TestCallsThatEndTheGuest: there is nothing left to tell it.
func TestCallsThatEndTheGuest(t *testing.T) {
	bug := errors.New("a bug")
	for _, err := range []error{bug, &hostfuncs.Error{Op: "call", Kind: hostfuncs.ErrHost, Message: "the call could not be made"}} {
		g := newGuest(t, &Session{Tools: &caller{err: err}})
		_, _, got := g.try(toolCall, valid[toolCall], nil)
		assert.ErrorIs(t, got, err)
	}
}

func TestResultThatCannotBeWritten(t *testing.T) {
	record := tool.Record{Result: tool.Result{Success: true, Data: json.RawMessage("{")}}
	status, response := newGuest(t, &Session{Tools: &caller{record: record}}).call(toolCall, valid[toolCall], nil)
	assert.Equal(t, statusIO, status)
	assert.JSONEq(t, `{"message":"the tool's result cannot be encoded"}`, response)
}

// FuzzCallRequest: an accepted request is an object with just these two members, also for the standard library, and the
// arguments are passed on as a substring of it.
func FuzzCallRequest(f *testing.F) {
	for _, arguments := range []string{`{}`, `{"a":[1,{"b":null}]}`, `[]`, `{"a":1,"a":2}`, `"x"`} {
		f.Add(calling(arguments))
	}
	f.Add(` {"arguments" : { } , "name":"\ud83d\ude00"} `)
	f.Add(`{"name":"a","name":"b","arguments":{}}`)
	f.Add(`{"name":"a","arguments":{}}{}`)
	f.Fuzz(func(t *testing.T, request string) {
		var name, text string
		err := decodeCall(request, decode.Members{"name": decode.Text(&name), "arguments": arguments(&text)}, "name", "arguments")
		if err != nil {
			var refused problem
			require.ErrorAs(t, err, &refused)
			require.True(t, json.Valid(refused.answer.head))
			return
		}
		require.True(t, utf8.ValidString(request))
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(request), &members))
		require.ElementsMatch(t, []string{"name", "arguments"}, slices.Collect(maps.Keys(members)))
		require.Equal(t, string(members["arguments"]), text)
		require.Contains(t, request, text)
		var read string
		require.NoError(t, json.Unmarshal(members["name"], &read))
		require.Equal(t, read, name)
		_, err = tool.ParseArguments(text)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(text, "{"))
	})
}

// TestRecordIsTheOneThatIsStored: its members are those of a record's own JSON.
func TestRecordIsTheOneThatIsStored(t *testing.T) {
	fuel := int64(5)
	full := tool.Record{
		Call: tool.Call{ID: "a", Type: "function", Function: tool.Function{Name: "search", Arguments: `{"b": "ü"}`}}, CallID: "1",
		Result:  tool.Result{Success: true, Output: "found", Data: json.RawMessage(`{"a":[1]}`), Content: []tool.Content{{Type: "text", Text: "c"}}},
		Skipped: true, ExecutionTime: 1500 * time.Millisecond, Cached: true, Source: "0", Parent: "2", Unrecorded: true, Redacted: true,
		Repairs: []tool.Repair{{Path: "$", Rule: "cast", From: json.RawMessage(`"1"`), To: json.RawMessage("1")}}, Cuts: []tool.Cut{{Part: "output", Bytes: 9}},
		Denials: []tool.Denial{{Permission: "files", Value: "/a"}}, HostCalls: []tool.HostCall{{Kind: "files.open", Bytes: 3}}, Log: "log",
		Usage: tool.Usage{Fuel: &fuel, MemoryBytes: 6, Wall: 7, HostCalls: 8},
	}
	for i, value := 0, reflect.ValueOf(full); i < value.NumField(); i++ {
		require.False(t, value.Field(i).IsZero(), "%s would not be compared", value.Type().Field(i).Name)
	}
	for _, r := range []tool.Record{full, {}} {
		want, err := json.Marshal(r)
		require.NoError(t, err)
		status, response := newGuest(t, &Session{Tools: &caller{record: r}}).call(toolCall, valid[toolCall], nil)
		require.Equal(t, statusOK, status)
		assert.Equal(t, string(want), response)
	}
}

// TestResultIsNotEscapedMoreThanItMust: < would take seven times its room.
func TestResultIsNotEscapedMoreThanItMust(t *testing.T) {
	const text = `<p class="a">&amp;</p>`
	written, err := encodeRecord(tool.Record{Result: tool.Result{Output: text, Data: json.RawMessage(`"` + "<>&" + `"`)}})
	require.NoError(t, err)
	assert.Contains(t, string(written), `<p class=\\\"a\\\">&amp;</p>`)
	assert.NotContains(t, string(written), "u003")
	var read tool.Record
	require.NoError(t, json.Unmarshal(written, &read))
	assert.Equal(t, text, read.Result.Output)
	assert.Equal(t, `"<>&"`, string(read.Result.Data))
}

// TestSizesOfResults: one that is too long is refused before it is written down.
func TestSizesOfResults(t *testing.T) {
	result := func(output, data, content int) tool.Result {
		r := tool.Result{Output: strings.Repeat("a", output), Data: json.RawMessage(`"` + strings.Repeat("b", data) + `"`)}
		r.Content = []tool.Content{{Data: make([]byte, content)}}
		return r
	}
	for _, test := range []struct {
		name   string
		result tool.Result
		status status
	}{
		{"the longest", result(8<<20-2, 0, 0), statusOK},
		{"a longer one", result(8<<20-1, 0, 0), statusLimit},
		{"in parts", result(4<<20, 2<<20-2, 2<<20), statusOK},
		{"longer in parts", result(4<<20, 2<<20-2, 2<<20+1), statusLimit},
	} {
		g := newGuest(t, &Session{Tools: &caller{record: tool.Record{Result: test.result}}})
		copy(g.memory[requestAt:], valid[toolCall])
		packed := g.mustRaw(toolCall, requestAt, uint64(len(valid[toolCall])))
		assert.Equal(t, test.status, status(packed>>32), test.name)
		if test.status == statusLimit {
			assert.Equal(t, `{"limit":"response_bytes","value":8388608}`, string(g.readAll()), test.name)
			assert.Less(t, testing.AllocsPerRun(10, func() { _, _ = g.raw(toolCall, requestAt, uint64(len(valid[toolCall]))) }), 200.0)
		}
	}
}

// TestEndWhileTheResultIsWritten: the guest does not continue to read it.
func TestEndWhileTheResultIsWritten(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &Session{Tools: &caller{record: tool.Record{Result: tool.Result{Data: json.RawMessage(`1`)}}}}
	g := newGuest(t, s)
	cancel(errOver)
	g.ctx = &lasting{With(ctx, s), 2} // before the call and after it
	_, _, err := g.try(toolCall, valid[toolCall], nil)
	assert.ErrorIs(t, err, errOver)
}

// BenchmarkLongestOfAGuest measures the time in which the host encodes the longest result of a guest.
func BenchmarkLongestOfAGuest(b *testing.B) {
	for name, text := range map[string]string{"plain": "a", "control": "\x01", "tags": "<", "quotes": `"`, "no UTF-8": "\xff"} {
		b.Run(name, func(b *testing.B) {
			r := tool.Record{Result: tool.Result{Output: strings.Repeat(text, 4<<20)}}
			for b.Loop() {
				if _, err := encodeRecord(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
