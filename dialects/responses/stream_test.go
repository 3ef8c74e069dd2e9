package responses

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

func added(index int, id, callID string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","id":%q,"call_id":%q,"name":"f","arguments":"","status":"in_progress"}}`, index, id, callID)
}

func delta(index int, id, text string) string {
	return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"item_id":%q,"delta":%q}`, index, id, text)
}

func done(index int, id, callID, arguments string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":{"type":"function_call","id":%q,"call_id":%q,"name":"f","arguments":%q,"status":"completed"}}`, index, id, callID, arguments)
}

func ended(items ...string) string {
	return `{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + strings.Join(items, ",") + `]}}`
}

func TestPiecesFindTheirCalls(t *testing.T) {
	item := func(callID, arguments string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"i%s","call_id":%q,"name":"f","arguments":%q,"status":"completed"}`, callID, callID, arguments)
	}
	for name, test := range map[string]struct {
		events []string
		want   []tool.Call
	}{
		"out of order": {
			[]string{added(1, "ib", "b"), delta(1, "ib", "2"), added(0, "ia", "a"), delta(0, "ia", "1"), done(1, "ib", "b", "2"), done(0, "ia", "a", "1"), completed},
			[]tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("b", "f", "2")},
		},
		"pieces before the beginning": {
			[]string{delta(0, "ia", "1"), added(0, "ia", "a"), delta(0, "ia", "2"), completed},
			[]tool.Call{dialecttest.Call("a", "f", "12")},
		},
		"no item.done": {
			[]string{added(0, "ia", "a"), delta(0, "ia", "1"), `{"type":"response.function_call_arguments.done","output_index":0,"item_id":"ia","arguments":"12"}`, completed},
			[]tool.Call{dialecttest.Call("a", "f", "12")},
		},
		"item.done without arguments": {
			[]string{added(0, "ia", "a"), delta(0, "ia", "1"), `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"ia","call_id":"a","name":"f","status":"completed"}}`, completed},
			[]tool.Call{dialecttest.Call("a", "f", "1")},
		},
		"the end alone": {
			[]string{ended(item("a", "1"), `{"type":"message","content":[]}`, item("b", "2"))},
			[]tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("b", "f", "2")},
		},
		"the end repeats": {
			[]string{added(0, "ia", "a"), done(0, "ia", "a", "1"), ended(item("a", "1"), item("b", "2"))},
			[]tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("b", "f", "2")},
		},
		"one index for all": {
			[]string{added(0, "ia", "a"), delta(0, "ia", "1"), done(0, "ia", "a", "1"), added(0, "ib", "b"), delta(0, "ib", "2"), done(0, "ib", "b", "2"), ended(item("a", "1"), item("b", "2"))},
			[]tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("b", "f", "2")},
		},
		"one index for a message and a call": {
			[]string{`{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"a"}`, added(0, "ia", "a"), delta(0, "ia", "1"), completed},
			[]tool.Call{dialecttest.Call("a", "f", "1")},
		},
		"one item id for two": {
			[]string{added(0, "x", "a"), added(1, "x", "b"), delta(1, "x", "2"), delta(0, "x", "1"), completed},
			[]tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("b", "f", "2")},
		},
		"neither an index nor a lasting id": {
			[]string{
				`{"type":"response.output_item.added","item":{"type":"function_call","id":"x1","call_id":"a","name":"f"}}`,
				`{"type":"response.output_item.done","item":{"type":"function_call","id":"x2","call_id":"a","name":"f","arguments":"1","status":"completed"}}`,
				completed,
			},
			[]tool.Call{dialecttest.Call("a", "f", "1")},
		},
		"an index for some": {
			[]string{
				added(5, "ia", "a"), `{"type":"response.output_item.added","item":{"type":"function_call","id":"ib","call_id":"b","name":"f"}}`,
				added(3, "ic", "c"), completed,
			},
			[]tool.Call{dialecttest.Call("c", "f", ""), dialecttest.Call("a", "f", ""), dialecttest.Call("b", "f", "")},
		},
		"an id for every event": {
			[]string{added(0, "x1", "a"), delta(0, "x2", "1"), delta(0, "x3", "2"), done(0, "x4", "a", "12"), ended(item("a", "12"))},
			[]tool.Call{dialecttest.Call("a", "f", "12")},
		},
		"no index": {
			[]string{
				`{"type":"response.output_item.added","item":{"type":"function_call","id":"ia","call_id":"a","name":"f"}}`,
				`{"type":"response.output_item.added","item":{"type":"function_call","id":"ib","call_id":"b","name":"f"}}`,
				`{"type":"response.function_call_arguments.delta","item_id":"ia","delta":"1"}`,
				`{"type":"response.function_call_arguments.delta","item_id":"ib","delta":"2"}`,
				completed,
			},
			[]tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("b", "f", "2")},
		},
		"neither index nor id": {
			[]string{
				`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"a","name":"f"}}`,
				`{"type":"response.function_call_arguments.delta","delta":"1"}`,
				completed,
			},
			[]tool.Call{dialecttest.Call("a", "f", "1")},
		},
		"no call_id": {
			[]string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","name":"f","arguments":"1","status":"completed"}}`, completed},
			[]tool.Call{dialecttest.Call("call_0", "f", "1")},
		},
		"arguments with the beginning": {
			[]string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}}`, completed},
			[]tool.Call{dialecttest.Call("a", "f", "{}")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stream, pieces := noerr.Get2(events(test.events...))(t)
			assert.Equal(t, test.want, stream.Response().ToolCalls)
			calls := dialecttest.Called(pieces)
			assert.ElementsMatch(t, test.want, calls, "each comes once")
			assert.Equal(t, tool.FinishToolCalls, stream.Response().FinishReason)
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
			id, callID := fmt.Sprint("i", i), fmt.Sprint("c", i)
			want = append(want, dialecttest.Call(callID, "f", text))
			own := []string{added(i, id, callID)}
			own = append(own, dialecttest.Cut(random, text, func(piece string) string {
				return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"item_id":%q,"delta":%s}`, i, id, piece)
			})...)
			pending = append(pending, own)
		}
		stream, pieces := noerr.Get2(events(append(dialecttest.Mix(random, pending), completed)...))(t)
		require.Equal(t, want, stream.Response().ToolCalls)
		calls := dialecttest.Called(pieces)
		require.Equal(t, want, calls)
	}
}

func TestTextsComeAsTheyAre(t *testing.T) {
	message := func(index int, text string) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":{"type":"message","id":"m%d","content":[{"type":"output_text","text":%q}]}}`, index, index, text)
	}
	stream, pieces := noerr.Get2(events(
		`{"type":"response.created","response":{"id":"r","model":"m"}}`, `{"type":"keepalive","delta":{}}`,
		`{"type":"response.reasoning_text.delta","delta":"hm"}`,
		`{"type":"response.output_text.delta","output_index":1,"item_id":"m1","delta":"\ud83d"}`,
		`{"type":"response.output_text.delta","output_index":1,"item_id":"m1","delta":"\ude00"}`,
		message(1, "😀"), message(2, " whole "),
		`{"type":"response.refusal.delta","output_index":3,"item_id":"m3","delta":"no \ud83d"}`,
		ended(`{"type":"reasoning"}`, `{"type":"message","id":"m1","content":[{"text":"😀"}]}`, `{"type":"message","id":"m2","content":[{"text":" whole "}]}`, `{"type":"message","id":"m3","content":[]}`),
	))(t)
	assert.Equal(t, tool.ChatResponse{ID: "r", Model: "m", Content: "😀 whole no \ufffd", ToolCalls: []tool.Call{}, FinishReason: tool.FinishStop}, stream.Response())
	assert.Equal(t, `thinking r "hm"
answer r "😀"
answer r " whole "
answer r "no "
answer r "�"
complete r "" {"finish_reason":"stop","usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}} done
`, dialecttest.Lines(pieces))
}

func TestTheEndDoesNotRepeatAMessage(t *testing.T) {
	stream, _ := noerr.Get2(events(`{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"a"}`,
		ended(`{"type":"reasoning"}`, `{"type":"message","id":"m","content":[{"text":"a"}]}`)))(t)
	assert.Equal(t, "a", stream.Response().Content)
}

func TestTheNameOfTheEventStandsForItsType(t *testing.T) {
	stream, _ := noerr.Get2(feed("event: response.output_text.delta\ndata: {\"delta\":\"a\"}\n\nevent: response.completed\ndata: {\"response\":{\"output\":[]}}\n\ndata: [DONE]\n\n"))(t)
	assert.Equal(t, "a", stream.Response().Content)
}

func TestAStreamThatBrokeOff(t *testing.T) {
	stream, pieces, err := events(added(0, "ia", "a"), done(0, "ia", "a", "{}"), added(1, "ib", "b"), delta(1, "ib", "{}"))
	dialecttest.Broken(t, New(), stream, err, "responses stream: broke off")
	calls := dialecttest.Called(pieces)
	assert.Equal(t, []tool.Call{dialecttest.Call("a", "f", "{}")}, calls, "no call that may not be whole")
	assert.Equal(t, calls, stream.Response().ToolCalls)
}

func TestCallsThatBeganInACutStreamSaySo(t *testing.T) {
	stream, pieces := noerr.Get2(events(done(0, "ia", "a", "oops"), added(1, "ib", "b"), delta(2, "ic", "{}"), delta(3, "id", "{"), added(3, "id", "d"),
		`{"type":"response.incomplete","response":{"output":[],"incomplete_details":{"reason":"max_output_tokens"}}}`))(t)
	calls := dialecttest.Called(pieces)
	half := []tool.Call{dialecttest.Half(dialecttest.Call("b", "f", "")), dialecttest.Half(dialecttest.Call("d", "f", "{"))}
	assert.Equal(t, append([]tool.Call{dialecttest.Call("a", "f", "oops")}, half...), calls)
	assert.Equal(t, calls, stream.Response().ToolCalls)
	assert.Equal(t, tool.FinishLength, stream.Response().FinishReason)
}

func TestBrokenStreamsAreReported(t *testing.T) {
	long := strings.Repeat("x", wire.MaxArguments/2+1)
	for name, test := range map[string]struct {
		events []string
		want   string
	}{
		"not JSON":            {[]string{"oops"}, "responses stream: is not JSON"},
		"an error":            {[]string{`{"type":"error","code":"server_error","message":"try again","param":null}`}, "responses stream: the provider answered with an error: server_error: try again"},
		"an error within":     {[]string{`{"type":"error","error":{"code":500,"message":"try again"}}`}, "responses stream: error: the provider answered with an error: 500: try again"},
		"failed":              {[]string{`{"type":"response.failed","response":{"error":{"code":"server_error","message":"try again"}}}`}, "response.error: the provider answered with an error: server_error: try again"},
		"failed in silence":   {[]string{`{"type":"response.failed","response":{}}`}, "response.status: the provider answered that the response failed"},
		"no response":         {[]string{`{"type":"response.completed"}`}, "responses stream: response: is missing"},
		"no item":             {[]string{`{"type":"response.output_item.added","output_index":0}`}, "responses stream: item: is missing"},
		"item without name":   {[]string{`{"type":"response.output_item.done","item":{"type":"function_call"}}`}, "responses stream: item.name: is missing"},
		"a name at the end":   {[]string{ended(`{"type":"function_call"}`)}, "responses stream: response.output[0].name: is missing"},
		"never began":         {[]string{delta(0, "ia", "{}"), completed}, "responses stream: has arguments for a call that never began"},
		"goes on":             {[]string{added(0, "ia", "a"), done(0, "ia", "a", "{}"), delta(0, "ia", "{}")}, "output_index: names a call that continues after its end"},
		"long pieces":         {[]string{delta(0, "ia", long), delta(0, "ia", long)}, "delta: has arguments of more than 1048576 bytes"},
		"long arguments":      {[]string{`{"type":"response.custom_tool_call_input.done","input":"` + long + long + `"}`}, "input: has arguments of more than 1048576 bytes"},
		"long arguments done": {[]string{`{"type":"response.function_call_arguments.done","arguments":"` + long + long + `"}`}, "arguments: has arguments of more than 1048576 bytes"},
		"a long stream":       {strings.Split(strings.Repeat(`{"type":"response.output_text.delta","delta":"`+long+"\"}\n", 17), "\n"), "responses stream: has more than 8388608 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			stream, _, err := events(test.events...)
			dialecttest.Broken(t, New(), stream, err, test.want)
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	_, calls, err := dialecttest.Until(New(), func(n int) string { return added(n, "", fmt.Sprint(n)) })
	require.ErrorContains(t, err, "one call too many; a response may have 4096")
	assert.Equal(t, wire.MaxCalls, calls)
	_, items, err := dialecttest.Until(New(), func(n int) string {
		return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d}`, n)
	})
	require.ErrorContains(t, err, "has more than 8192 items")
	assert.Equal(t, 8192, items)
}

// TestAnyOrderOfEventsIsSafe: whatever the order of well-formed events, no call is passed on twice, and the
// response equals its pieces. Each run tries other events.
func TestAnyOrderOfEventsIsSafe(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	for range 3000 {
		all := anyEvents(random)
		stream, pieces, err := events(append(all, completed)...)
		calls, text := dialecttest.Called(pieces), dialecttest.Said(pieces)
		require.Equal(t, stream.Response().Content, text, all)
		if err != nil {
			var typed *dialects.Error
			require.True(t, errors.As(err, &typed), "%T", err)
			require.Subset(t, calls, stream.Response().ToolCalls, all)
			continue
		}
		require.ElementsMatch(t, stream.Response().ToolCalls, calls, all)
		for _, call := range calls {
			require.NotEmpty(t, call.ID)
			require.NotEmpty(t, call.Function.Name)
		}
	}
}

// anyEvents returns up to seven well-formed events that need not fit together.
func anyEvents(random *rand.Rand) []string {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var all []string
	for range random.IntN(8) {
		where := pick(``, `,"output_index":0`, `,"output_index":1`) + pick(``, `,"item_id":"ia"`, `,"item_id":"ib"`)
		item := pick(`{"type":"message","content":[{"text":"t"}]`, `{"type":"function_call","arguments":"{}"`, `{"type":"custom_tool_call","input":"x"`) +
			pick(``, `,"name":"f"`) + pick(``, `,"id":"ia"`, `,"id":"ib"`) + pick(``, `,"call_id":"a"`, `,"call_id":"b"`) + pick(``, `,"status":"completed"`, `,"status":"incomplete"`) + `}`
		all = append(all, pick(
			`{"type":"response.output_item.added"`+where+`,"item":`+item+`}`,
			`{"type":"response.output_item.done"`+where+`,"item":`+item+`}`,
			`{"type":"response.output_text.delta"`+where+`,"delta":"x"}`,
			`{"type":"response.function_call_arguments.delta"`+where+`,"delta":"{"}`,
			`{"type":"response.custom_tool_call_input.done"`+where+`,"input":"{}"}`,
			`{"type":"response.incomplete","response":{"output":[`+item+`]}}`,
			ended(item),
		))
	}
	return all
}
