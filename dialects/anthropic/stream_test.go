package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
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

func TestAStreamIsPutTogether(t *testing.T) {
	stream, pieces := noerr.Get2(dialecttest.Feed(New(), string(dialecttest.Fixture(t, "parallel.sse"))))(t)
	assert.Equal(t, string(dialecttest.Fixture(t, "parallel.pieces")), dialecttest.Lines(pieces))
	assert.Equal(t, whole(`{"city": "Z\u00fcrich", "days": 12345678901234567890}`), stream.Response())
	for _, piece := range pieces {
		assert.NotNil(t, piece.ToolCalls)
		assert.NotNil(t, piece.KnowledgeReferences)
	}
}

// events feeds data without names: the type says what an event is.
func events(data ...string) (dialects.Stream, []tool.StreamResponse, error) {
	return dialecttest.Feed(New(), dialecttest.Data(data...))
}

func started(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func startedCall(index int, id string) string {
	return started(index, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"f","input":{}}`, id))
}

func added(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

// addedArguments adds a piece, which is a JSON string.
func addedArguments(index int, piece string) string {
	return added(index, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, piece))
}

func addedText(index int, text string) string {
	return added(index, fmt.Sprintf(`{"type":"text_delta","text":%s}`, quoted(text)))
}

func quoted(text string) string {
	encoded, _ := json.Marshal(text)
	return string(encoded)
}

func stopped(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func reason(stop string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q}}`, stop)
}

const messageStop = `{"type":"message_stop"}`

// TestStreamsThatEndWithDone: servers that speak the format end it as OpenAI's do, or with vendor events.
func TestStreamsThatEndWithDone(t *testing.T) {
	call := []string{startedCall(0, "a"), addedArguments(0, `"{}"`), stopped(0), reason("tool_use")}
	begin := `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[]}}`
	for name, end := range map[string][]string{
		"after message_stop": {messageStop, "[DONE]"}, "in its place": {"[DONE]"}, "an event of their own": {messageStop, `{"type":"vendor_stats"}`}, "the control": {messageStop},
	} {
		stream, _, err := events(slices.Concat([]string{begin}, call, end)...)
		require.NoError(t, err, name)
		assert.Equal(t, []tool.Call{dialecttest.Call("a", "f", "{}")}, stream.Response().ToolCalls, name)
	}
}

// TestPiecesInAnyOrder splits calls at random positions, also within characters and escapes, and
// interleaves the blocks. Only the order within a block is kept, and some blocks begin late.
func TestPiecesInAnyOrder(t *testing.T) {
	texts := []string{`{"a":"😀 \u00e9 \"q\" \\"}`, `{}`, `{"n":0.10000000000000000000001,"deep":[[["é"]]]}`, `{"broken":`, "{\"s\":\"\u2028</script>\"}"}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var queues [][]string
		var want []tool.Call
		for index := range 1 + random.IntN(5) {
			text := texts[random.IntN(len(texts))]
			queue := dialecttest.Cut(random, text, func(piece string) string { return addedArguments(index, piece) })
			id := fmt.Sprintf("call_%d", index)
			start := started(index, `{"type":"tool_use","name":"f","input":{}}`)
			if random.IntN(2) == 0 {
				start = startedCall(index, id)
			}
			late := random.IntN(3) / 2 * random.IntN(len(queue)+1)
			queue = append(queue[:late:late], append([]string{start}, queue[late:]...)...)
			if random.IntN(4) > 0 {
				queue = append(queue, stopped(index))
			}
			queues, want = append(queues, queue), append(want, dialecttest.Call(id, "f", text))
		}
		stream, pieces, err := events(append(dialecttest.Mix(random, queues), reason("tool_use"), messageStop)...)
		require.NoError(t, err, seed)
		require.Equal(t, want, stream.Response().ToolCalls, seed)
		require.ElementsMatch(t, want, dialecttest.Called(pieces), seed)
		require.Equal(t, joined(pieces), joinedCalls(dialecttest.Called(pieces)), "the deltas come to what the calls are")
	}
}

// joined puts the arguments of tool_delta pieces together, by their index.
func joined(pieces []tool.StreamResponse) map[string]string {
	ids, all := map[int]string{}, map[string]string{}
	for _, p := range pieces {
		if p.ResponseType != tool.ResponseToolDelta {
			continue
		}
		var delta struct {
			Index         int
			ID, Arguments string
		}
		if json.Unmarshal(p.Data, &delta) != nil {
			return nil
		}
		if delta.ID != "" {
			ids[delta.Index] = delta.ID
		}
		all[ids[delta.Index]] += delta.Arguments
	}
	return all
}

func joinedCalls(calls []tool.Call) map[string]string {
	all := map[string]string{}
	for _, call := range calls {
		all[call.ID] = call.Function.Arguments
	}
	return all
}

// TestACallIsPassedOnOnceItIsCertain: a call without arguments is passed on only when it is known not to be
// truncated.
func TestACallIsPassedOnOnceItIsCertain(t *testing.T) {
	stream := New().Stream()
	count := func(data string) int {
		pieces := noerr.Get(stream.Event("", []byte(data)))(t)
		return len(dialecttest.Called(pieces))
	}
	assert.Zero(t, count(startedCall(0, "a"))+count(addedArguments(0, quoted(`{"x":1}`))))
	assert.Equal(t, 1, count(stopped(0)))
	assert.Zero(t, count(startedCall(1, "b"))+count(stopped(1)))
	assert.Len(t, stream.Response().ToolCalls, 1)
	assert.Zero(t, count(reason("tool_use")))
	assert.Equal(t, 1, count(messageStop))
	assert.Len(t, stream.Response().ToolCalls, 2)
	noerr.Get(stream.End())(t)
}

func TestACutStreamMarksTheLastCall(t *testing.T) {
	for _, arguments := range []string{"", `{"path":"/`} {
		stream, pieces := noerr.Get2(events(startedCall(0, "a"), stopped(0), startedCall(1, "b"), addedArguments(1, quoted(arguments)),
			stopped(1), reason("max_tokens"), messageStop))(t)
		half := dialecttest.Half(dialecttest.Call("b", "f", cmp.Or(arguments, "{}")))
		assert.Equal(t, []tool.Call{dialecttest.Call("a", "f", "{}"), half}, dialecttest.Called(pieces))
		assert.Equal(t, dialecttest.Called(pieces), stream.Response().ToolCalls)
		assert.Equal(t, tool.FinishLength, stream.Response().FinishReason)
	}
}

func TestArgumentsThatComeAtOnce(t *testing.T) {
	_, pieces := noerr.Get2(events(started(0, `{"type":"tool_use","id":"a","name":"f","input":{"x":1.0}}`), stopped(0), reason("tool_use"), messageStop))(t)
	assert.Equal(t, []tool.Call{dialecttest.Call("a", "f", `{"x":1.0}`)}, dialecttest.Called(pieces))
}

func TestTextThatIsCutWithinACharacter(t *testing.T) {
	stream, pieces := noerr.Get2(events(started(0, `{"type":"text","text":"a\ud83d"}`), added(0, `{"type":"text_delta","text":"\ude00b\ud83d"}`), stopped(0), messageStop))(t)
	assert.Equal(t, "a😀b\uFFFD", stream.Response().Content)
	assert.Equal(t, "answer  \"a\"\nanswer  \"😀b\"\nanswer  \"\uFFFD\"\n", dialecttest.Lines(pieces[:3]))
}

func TestHiddenThinkingIsPassedOnForTheProvider(t *testing.T) {
	stream, pieces := noerr.Get2(events(started(0, `{"type":"redacted_thinking","data":"ZW5j"}`), stopped(0), messageStop))(t)
	assert.Equal(t, "thinking  \"\" {\"redacted_thinking\":\"ZW5j\"}\n", dialecttest.Lines(pieces[:1]))
	assert.Empty(t, stream.Response().Content)
}

func TestBrokenStreamsAreRefused(t *testing.T) {
	text, tool := started(0, `{"type":"text","text":""}`), startedCall(0, "a")
	piece := added(0, `{"type":"input_json_delta","partial_json":"{"}`)
	for want, data := range map[string][]string{
		"anthropic stream: broke off: message_stop did not come": {text},
		"is not JSON":                                               {`{`},
		"overloaded_error: Overloaded":                              {`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		"an error event says what went wrong":                       {`{"type":"error"}`},
		`"message_delta" follows message_stop`:                      {messageStop, reason("end_turn")},
		"message_start comes twice":                                 {`{"type":"message_start","message":{}}`, `{"type":"message_start","message":{}}`},
		"message: is missing":                                       {`{"type":"message_start"}`},
		"index: is missing or below zero":                           {`{"type":"content_block_stop"}`},
		"below zero":                                                {stopped(-1)},
		"content_block: is missing":                                 {`{"type":"content_block_start","index":0}`},
		"delta: is missing":                                         {text, `{"type":"content_block_delta","index":0}`},
		"block 0 begins twice":                                      {text, text},
		"block 0 ends twice":                                        {text, stopped(0), stopped(0)},
		"block 0 continues after its end":                           {text, stopped(0), addedText(0, "x")},
		"block 0 is a text, but received arguments":                 {text, piece},
		"block 0 is not a text, but received text":                  {tool, addedText(0, "x")},
		"block 0 is a text, but received something else before":     {piece, text},
		"block 0 is a tool_use, but received something else before": {addedText(0, "x"), tool},
		"block 0 has arguments but never began":                     {piece, messageStop},
		"delta.text: is a JSON number":                              {added(0, `{"type":"text_delta","text":1}`)},
	} {
		stream, _, err := events(data...)
		dialecttest.Broken(t, New(), stream, err, want)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	_, pieces, err := dialecttest.Until(New(), func(int) string { return addedArguments(0, quoted(long)) })
	require.ErrorContains(t, err, "has arguments of more than 1048576 bytes")
	assert.Equal(t, 10, pieces)
	stream, _, err := dialecttest.Until(New(), func(int) string { return addedText(0, long) })
	require.ErrorContains(t, err, "has more than 8388608 bytes")
	assert.Len(t, stream.Response().Content, 8_300_000)
	_, calls, err := dialecttest.Until(New(), func(n int) string { return startedCall(n, "") })
	require.ErrorContains(t, err, "more than 4096 calls")
	assert.Equal(t, wire.MaxCalls, calls)
}
