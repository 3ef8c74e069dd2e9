package rest

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// bodies are examples of what clients send.
var bodies = []string{
	`{"id":"c1","name":"calculator","arguments":{"expression":"2+2"},"session":"s1","timeout_seconds":1.5}`,
	`{"name":"calculator","arguments":"{\"a\":1}","type":"custom","requests":{"x":{"definition":{},"values":{"a":"b"}}}}`,
	`{"calls":[{"name":"a"},{"id":"2","name":"b","arguments":{"n":9007199254740993,"m":1e2}}],"tools":[{"type":"function","name":"c"},{"type":"custom","custom":{"name":"d"}},{"type":"web_search"}]}`,
	`{"dialect":"openai","response":{"choices":[{"message":{"tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]}}]}}`,
	`{"response":"data: {\"choices\":[]}\n\n"}`,
	`{"tool_outputs":[{"tool_call_id":"1","output":"x"},{"tool_call_id":"2","result":{"success":true,"data":[1]}}]}`,
	`{"dialect":"responses","results":[{"type":"function_call_output","call_id":"1","output":"x"}]}`,
	`{"approvals":[{"call_id":"1","approve":true,"fingerprint":"f","scope":"time","for_seconds":60},{"call_id":"2","approve":false,"reason":"no"}]}`,
	`{"a":1,"a":2}`, `{"name":null}`, `[`, "\"\xff\"", `{"calls":[[]]}`, `{"calls":{"0":{}}}`,
}

// FuzzBodies: whatever a client sends, it is read or refused with a status from 400 to 499. What is read is what the
// body says: a call's arguments are a part of it, byte for byte, and no object in it has a name twice.
func FuzzBodies(f *testing.F) {
	for _, body := range bodies {
		f.Add(body)
	}
	x := &exchange{request: httptest.NewRequest("POST", "/v1/calls", nil)}
	tools := registry.New()
	f.Fuzz(func(t *testing.T, body string) {
		x.body = []byte(body)
		one, err := x.callRequest(tools)
		judge(t, body, one, err)
		many, err := x.batchRequestOf(tools)
		judge(t, body, many, err)
		var s submission
		for _, err := range []error{
			decodeObject(body, decode.Members{"tool_outputs": decode.Elements(maxCalls, s.output), "dialect": decode.Text(new(string)), "results": decode.Raw(&s.document)}),
			decodeObject(body, decode.Members{"approvals": decode.Elements(maxCalls, s.approval)}),
		} {
			judge(t, body, batchRequest{}, err)
		}
		for _, a := range s.approvals {
			assert.NotEmpty(t, a.CallID)
			assert.Equal(t, a.Scope == tool.ApproveFor, a.For > 0)
			assert.True(t, a.Until.IsZero())
		}
	})
}

// judge requires an error to be a refusal, and the values that were read to be in the body.
func judge(t *testing.T, body string, read batchRequest, err error) {
	t.Helper()
	if err != nil {
		var refused *refusal
		require.ErrorAs(t, err, &refused)
		assert.GreaterOrEqual(t, refused.status, 400)
		assert.Less(t, refused.status, 500)
		assert.NotEmpty(t, refused.detail)
		return
	}
	require.True(t, json.Valid([]byte(body)))
	_, err = jsontext.Parse(body, jsontext.Limits{Depth: maxDepth})
	require.NoError(t, err, "names are there once")
	assert.Nil(t, read.batch.Session)
	assert.GreaterOrEqual(t, read.batch.Timeout, executor.Batch{}.Timeout)
	for _, c := range read.batch.Calls {
		if c.Origin == "" && strings.HasPrefix(c.Function.Arguments, "{") && !strings.Contains(body, `"response"`) && !strings.Contains(body, `\`) {
			assert.Contains(t, body, c.Function.Arguments)
		}
	}
}

// FuzzFeed: a reader of a feed from any event on, however late, gets the events that were added, in order, each event
// once; or is told that it is gone.
func FuzzFeed(f *testing.F) {
	f.Add([]byte{1, 2, 3, 255, 4, 200, 200, 0}, uint16(50))
	f.Fuzz(func(t *testing.T, steps []byte, most uint16) {
		feed := feed{most: int(most)}
		var added []string
		var begins []int64
		fresh := true
		for _, step := range steps {
			if step == 0 {
				continue
			}
			last := step%4 == 3
			if fresh {
				begins = append(begins, int64(len(added)))
				feed.startResponse()
				require.EqualValues(t, len(added), feed.start(), "who comes before the first event waits for it")
			}
			feed.add(eventsOf(string(make([]byte, step))), last)
			added, fresh = append(added, string(make([]byte, step))), last
		}
		for after := range int64(len(added)) + 1 { // requests with a later id are refused
			at := after
			for {
				found, more, gone := feed.after(at)
				if gone {
					require.Equal(t, after, at, "a reader who has begun goes on")
					break
				}
				if found == nil {
					require.NotNil(t, more)
					require.EqualValues(t, len(added), at)
					break
				}
				require.Equal(t, at+1, found.id)
				require.Equal(t, added[at], string(found.data))
				at++
			}
		}
		if len(added) > 0 {
			require.Equal(t, begins[len(begins)-1], feed.start())
			found, _, gone := feed.after(int64(len(added)) - 1)
			require.False(t, gone, "the last is always there")
			require.NotNil(t, found)
		}
	})
}

func eventsOf(data string) []dialects.Event { return []dialects.Event{{Name: "e", Data: []byte(data)}} }
