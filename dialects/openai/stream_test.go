package openai

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

func TestPiecesFindTheirCalls(t *testing.T) {
	for name, test := range map[string]struct {
		deltas []string // elements of tool_calls, each in a separate chunk
		want   []tool.Call
	}{
		"out of order": {
			deltas: []string{`{"index":1,"id":"b","function":{"name":"g","arguments":"2"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("b", "g", "2")},
		},
		"arguments before the name": {
			deltas: []string{`{"index":0,"function":{"arguments":"{"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "{}")},
		},
		"one index for all": {
			deltas: []string{
				`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":0,"function":{"arguments":"2"}}`,
				`{"index":0,"id":"b","function":{"name":"f","arguments":"3"}}`, `{"index":0,"id":"a","function":{"arguments":"4"}}`, `{"index":0,"function":{"arguments":"5"}}`,
			},
			want: []tool.Call{dialecttest.Call("a", "f", "124"), dialecttest.Call("b", "f", "35")},
		},
		"an id in every piece": {
			deltas: []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":0,"id":"a","function":{"arguments":"2"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "12")},
		},
		"another id in every piece": {
			deltas: []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":0,"id":"x","function":{"arguments":"2"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "12")},
		},
		"an id that is another's": {
			deltas: []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":1,"id":"b","function":{"name":"f","arguments":"2"}}`, `{"index":1,"id":"a","function":{"arguments":"3"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("b", "f", "23")},
		},
		"an index for some": {
			deltas: []string{`{"index":5,"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"f"}}`, `{"index":3,"id":"c","function":{"name":"f"}}`},
			want:   []tool.Call{dialecttest.Call("c", "f", ""), dialecttest.Call("a", "f", ""), dialecttest.Call("b", "f", "")},
		},
		"one id for two calls": {
			deltas: []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":1,"id":"a","function":{"name":"f","arguments":"2"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("a", "f", "2")},
		},
		"no index": {
			deltas: []string{
				`{"id":"a","function":{"name":"f","arguments":"1"}}`, `{"function":{"arguments":"2"}}`,
				`{"id":"b","function":{"name":"f","arguments":"3"}}`, `{"id":"a","function":{"arguments":"4"}}`,
			},
			want: []tool.Call{dialecttest.Call("a", "f", "124"), dialecttest.Call("b", "f", "3")},
		},
		"neither index nor id": {
			deltas: []string{`{"function":{"name":"f","arguments":"1"}}`, `{"function":{"arguments":"2"}}`, `{"function":{"name":"f","arguments":"3"}}`},
			want:   []tool.Call{dialecttest.Call("call_0", "f", "12"), dialecttest.Call("call_1", "f", "3")},
		},
		"an index of -1": {
			deltas: []string{`{"index":-1,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":-1,"function":{"arguments":"2"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "12")},
		},
		"the name in every piece": {
			deltas: []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":0,"function":{"name":"f","arguments":"2"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "12")},
		},
		"the name in pieces": {
			deltas: []string{`{"index":0,"id":"a","function":{"name":"get_"}}`, `{"index":0,"function":{"name":"weather","arguments":"{}"}}`},
			want:   []tool.Call{dialecttest.Call("a", "get_weather", "{}")},
		},
		"arguments as an object": {
			deltas: []string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"n":1.0}}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", `{"n":1.0}`)},
		},
		"ids of null": {
			deltas: []string{`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"1"}}`, `{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"2"}}`},
			want:   []tool.Call{dialecttest.Call("a", "f", "12")},
		},
		"a custom tool": {
			deltas: []string{`{"index":0,"id":"a","type":"custom","custom":{"name":"g","input":"l"}}`, `{"index":0,"custom":{"input":"s"}}`},
			want:   []tool.Call{dialecttest.Custom("a", "g", "ls")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			deltas := make([]string, len(test.deltas))
			for i, delta := range test.deltas {
				deltas[i] = `{"tool_calls":[` + delta + `]}`
			}
			stream, pieces := noerr.Get2(chunks("tool_calls", deltas...))(t)
			assert.Equal(t, test.want, stream.Response().ToolCalls)
			calls := dialecttest.Called(pieces)
			assert.Equal(t, test.want, calls)

			stream, _ = noerr.Get2(chunks("tool_calls", `{"tool_calls":[`+strings.Join(test.deltas, ",")+`]}`))(t)
			assert.Equal(t, test.want, stream.Response().ToolCalls, "in one chunk")
		})
	}
}

// TestWhereverAStreamIsCut: pieces of any size, interleaved in any order, assemble to the same calls.
func TestWhereverAStreamIsCut(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	texts := []string{`{"a":"\"\\🌦\u00fc\ud83c\udf27"}`, `{"ü🌧":1.0e400,"n":123456789012345678901234567890}`, `not {JSON} 🌦🌦`}
	for range 300 {
		var pending [][]string
		want := []tool.Call{}
		for i, text := range texts {
			want = append(want, dialecttest.Call(fmt.Sprint("id", i), "f", text))
			deltas := []string{fmt.Sprintf(`{"index":%d,"id":"id%d","function":{"name":"f","arguments":""}}`, i, i)}
			deltas = append(deltas, dialecttest.Cut(random, text, func(piece string) string {
				return fmt.Sprintf(`{"index":%d,"function":{"arguments":%s}}`, i, piece)
			})...)
			pending = append(pending, deltas)
		}
		var deltas []string
		for _, delta := range dialecttest.Mix(random, pending) {
			deltas = append(deltas, `{"tool_calls":[`+delta+`]}`)
		}
		stream, pieces := noerr.Get2(chunks("tool_calls", deltas...))(t)
		require.Equal(t, want, stream.Response().ToolCalls)
		calls := dialecttest.Called(pieces)
		require.Equal(t, want, calls)
	}
}

func TestTextsComeAsTheyAre(t *testing.T) {
	stream, pieces := noerr.Get2(chunks("stop",
		`{"role":"assistant","reasoning_content":"hm \ud83d"}`, `{"reasoning_content":"\ude00"}`, `{"reasoning":{"effort":1}}`, `{"reasoning":"so"}`,
		`{"content":"\ud83d"}`, `{"content":null}`, `{"content":""}`, `{"content":"\ude00!"}`, `{"content":[{"type":"text","text":"?"}]}`,
		`{"refusal":" no \ud83d"}`))(t)
	assert.Equal(t, "😀!? no \ufffd", stream.Response().Content)
	assert.Equal(t, `thinking  "hm "
thinking  "😀"
thinking  "so"
answer  "😀!"
answer  "?"
answer  " no "
answer  "�"
complete  "" {"finish_reason":"stop","usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}} done
`, dialecttest.Lines(pieces))
}

func TestAStreamWithoutDoneEndsAllTheSame(t *testing.T) {
	stream, pieces := noerr.Get2(feed(`data: {"id":"c","choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}` + "\n\n"))(t)
	assert.Equal(t, []tool.Call{dialecttest.Call("a", "f", "{}")}, stream.Response().ToolCalls)
	assert.Equal(t, tool.FinishToolCalls, stream.Response().FinishReason)
	require.Len(t, pieces, 3)
	assert.Equal(t, tool.ResponseComplete, pieces[2].ResponseType)
	assert.True(t, pieces[2].Done)
}

func TestWhatFollowsDoneIsNotRead(t *testing.T) {
	stream := New().Stream()
	for _, data := range []string{`{"choices":[{"delta":{"content":"a"}}]}`, ` [DONE] `, `{"choices":[{"delta":{"content":"b"}}]}`, `rest`} {
		noerr.Get(stream.Event("", []byte(data)))(t)
	}
	noerr.Get(stream.End())(t)
	assert.Equal(t, "a", stream.Response().Content)
}

func TestOtherChoicesAreNotMixedIn(t *testing.T) {
	stream, _ := noerr.Get2(feed(`data: {"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"},{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n"))(t)
	assert.Equal(t, "a", stream.Response().Content)
	assert.Equal(t, tool.FinishStop, stream.Response().FinishReason)
}

// TestHalfCallsOfAStreamSaySo: only calls without a name are left out.
func TestHalfCallsOfAStreamSaySo(t *testing.T) {
	stream, pieces := noerr.Get2(chunks("length",
		`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"f","arguments":"{\"a\""}},{"index":2,"id":"c"}]}`))(t)
	calls := dialecttest.Called(pieces)
	assert.Equal(t, []tool.Call{dialecttest.Call("a", "f", "{}"), dialecttest.Half(dialecttest.Call("b", "f", `{"a"`))}, calls)
	assert.Equal(t, calls, stream.Response().ToolCalls)
	assert.Equal(t, tool.FinishLength, stream.Response().FinishReason)
}

func TestAStreamThatBrokeOff(t *testing.T) {
	stream, pieces, err := feed(`data: {"choices":[{"delta":{"content":"a","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n")
	dialecttest.Broken(t, New(), stream, err, "openai stream: broke off")
	calls, text := dialecttest.Called(pieces), dialecttest.Said(pieces)
	assert.Empty(t, calls, "no call that may not be whole")
	assert.Equal(t, "a", text)
	assert.Equal(t, []tool.Call{}, stream.Response().ToolCalls)
}

func TestBrokenStreamsAreReported(t *testing.T) {
	long := strings.Repeat("x", wire.MaxArguments/2+1)
	for name, test := range map[string]struct{ events, want string }{
		"not JSON":             {"data: oops\n\n", "openai stream: is not JSON"},
		"an error":             {"data: {\"error\":{\"message\":\"overloaded\"}}\n\n", "openai stream: error: the provider answered with an error: overloaded"},
		"an event of errors":   {"event: error\ndata: {\"message\":\"overloaded\"}\n\n", "openai stream: the provider answered with an error: overloaded"},
		"an event of an error": {"event: error\ndata: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n", "openai stream: error: the provider answered with an error: overloaded"},
		"an event of words":    {"event: error\ndata: overloaded\n\n", "openai stream: the provider answered with an error: overloaded"},
		"a piece of nothing":   {"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"x\"}}]}}]}\n\n", "tool_calls[0]: has no index, id or name"},
		"a call without name": {"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3,\"id\":\"a\"}]}}]}\n\ndata: [DONE]\n\n",
			"openai stream: has a call with index 3 without a name"},
		"a function call": {"data: {\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"f\"}}}]}\n\n", "choices[0].delta.function_call: is deprecated"},
		"long arguments": {strings.Repeat("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\""+long+"\"}}]}}]}\n\n", 2),
			"choices[0].delta.tool_calls[0]: has arguments of more than 1048576 bytes"},
		"a long name": {strings.Repeat("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\""+long[:3000]+"\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"y\"}}]}}]}\n\n", 2),
			"has a name of more than 4096 bytes"},
		"a long stream":      {strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\""+long+"\"}}]}\n\n", 17), "openai stream: has more than 8388608 bytes"},
		"a choice of a word": {"data: {\"choices\":[{\"delta\":\"x\"}]}\n\n", "choices[0].delta: is a JSON string"},
	} {
		t.Run(name, func(t *testing.T) {
			stream, _, err := feed(test.events)
			dialecttest.Broken(t, New(), stream, err, test.want)
			assert.Empty(t, stream.Response().ToolCalls)
		})
	}
}

func TestTooManyCallsInAStream(t *testing.T) {
	_, calls, err := dialecttest.Until(New(), func(n int) string {
		return fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":%d,"function":{"name":"f"}}]}}]}`, -n)
	})
	require.ErrorContains(t, err, "begins one call too many; a response may have 4096")
	assert.Equal(t, wire.MaxCalls, calls)
}

// TestAnyOrderOfPiecesIsSafe: whatever the order of well-formed pieces, none is lost or repeated, and the
// response equals its pieces.
func TestAnyOrderOfPiecesIsSafe(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for range 3_000 {
		var deltas []string
		sent := 0
		for range random.IntN(8) {
			where := pick(`"index":0`, `"index":1`, `"index":null`) + pick(``, `,"id":"a"`, `,"id":"b"`)
			deltas = append(deltas, `{"tool_calls":[{`+where+`,"function":{"arguments":"x"`+pick(``, `,"name":"f"`, `,"name":"g"`)+`}}]}`)
			sent++
		}
		stream, pieces, err := chunks("tool_calls", deltas...)
		if err != nil {
			var typed *dialects.Error
			require.True(t, errors.As(err, &typed), "%T", err)
			require.Empty(t, stream.Response().ToolCalls)
			continue
		}
		calls := dialecttest.Called(pieces)
		require.Equal(t, stream.Response().ToolCalls, calls)
		for _, call := range calls {
			require.NotEmpty(t, call.ID)
			require.NotEmpty(t, call.Function.Name)
			sent -= len(call.Function.Arguments)
		}
		require.Zero(t, sent, deltas)
	}
}
