package gemini

import (
	"encoding/json"
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

func TestAStreamIsPutTogether(t *testing.T) {
	stream, pieces := noerr.Get2(dialecttest.Feed(New(), string(dialecttest.Fixture(t, "parallel.sse"))))(t)
	assert.Equal(t, string(dialecttest.Fixture(t, "parallel.pieces")), dialecttest.Lines(pieces))
	assert.Equal(t, whole(`{"city":"Zürich","days":12345678901234567890}`), stream.Response())
	for _, piece := range pieces {
		assert.NotNil(t, piece.ToolCalls)
		assert.NotNil(t, piece.KnowledgeReferences)
	}
}

func TestArgumentsInPiecesArePutTogether(t *testing.T) {
	stream, pieces := noerr.Get2(dialecttest.Feed(New(), string(dialecttest.Fixture(t, "partial.sse"))))(t)
	assert.Equal(t, string(dialecttest.Fixture(t, "partial.pieces")), dialecttest.Lines(pieces))
	assert.Equal(t, dialecttest.Called(pieces), stream.Response().ToolCalls)
}

// TestSignaturesGoBackWithTheirCalls: the signature comes with a call's first piece, a later one, or its end.
func TestSignaturesGoBackWithTheirCalls(t *testing.T) {
	signed := dialecttest.Call("gemini-call-0", "f", `{"a":1}`)
	signed.Signature = "c2ln/w=="
	other := dialecttest.Call("b", "g", "{}")
	const sign = `,"thoughtSignature":"c2ln/w=="`
	for name, parts := range map[string][]string{
		"whole":         {`{"functionCall":{"name":"f","args":{"a":1}}` + sign + `}`, `{"functionCall":{"id":"b","name":"g"}}`},
		"at the first":  {`{"functionCall":{"name":"f","willContinue":true}` + sign + `}`, `{"functionCall":{"partialArgs":[{"jsonPath":"$.a","numberValue":1}]}}`, `{"functionCall":{"id":"b","name":"g"}}`},
		"in the middle": {`{"functionCall":{"name":"f","willContinue":true}}`, `{"functionCall":{"partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}` + sign + `}`, `{"functionCall":{}}`, `{"functionCall":{"id":"b","name":"g"}}`},
		"with the end":  {`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}}`, `{"functionCall":{}` + sign + `}`, `{"functionCall":{"id":"b","name":"g"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			documents := make([]string, len(parts))
			for i, part := range parts {
				documents[i] = reply("", part)
			}
			stream, pieces := noerr.Get2(events(append(documents, reply("STOP"))...))(t)
			assert.Equal(t, []tool.Call{signed, other}, stream.Response().ToolCalls)
			assert.Equal(t, []tool.Call{signed, other}, dialecttest.Called(pieces))
			response := noerr.Get(New().Response([]byte(reply("STOP", parts...))))(t)
			assert.Equal(t, []tool.Call{signed, other}, response.ToolCalls)
		})
	}
	assert.Equal(t, `[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln/w=="},{"functionCall":{"id":"b","name":"g","args":{}}}]`,
		dialecttest.Calls(t, New(), signed, other))
}

func events(documents ...string) (dialects.Stream, []tool.StreamResponse, error) {
	return dialecttest.Feed(New(), dialecttest.Data(documents...))
}

func goesOn(fields string) string {
	return reply("", `{"functionCall":{`+fields+`,"willContinue":true}}`)
}

func partial(id, path, value string) string {
	quoted, _ := json.Marshal(path)
	return goesOn(fmt.Sprintf(`"id":%q,"partialArgs":[{"jsonPath":%s,%s}]`, id, quoted, value))
}

// TestInterleavedPiecesByID cuts texts at random places and mixes the calls.
func TestInterleavedPiecesByID(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		var queues [][]string
		var want []tool.Call
		for n := range 1 + random.IntN(4) {
			id, text := fmt.Sprint("c", n), []rune("a \"é\" \\ 😀 "+fmt.Sprint(seed))
			queue := []string{goesOn(fmt.Sprintf(`"id":%q,"name":"f"`, id))}
			queue = append(queue, partial(id, "$.n", `"numberValue":1.50`))
			for len(text) > 0 {
				cut := 1 + random.IntN(len(text))
				quoted, _ := json.Marshal(string(text[:cut]))
				queue = append(queue, partial(id, "$.list[0]['s']", fmt.Sprintf(`"stringValue":%s,"willContinue":%t`, quoted, cut < len(text))))
				text = text[cut:]
			}
			queue = append(queue, reply("", fmt.Sprintf(`{"functionCall":{"id":%q}}`, id)))
			queues = append(queues, queue)
			want = append(want, dialecttest.Call(id, "f", fmt.Sprintf(`{"n":1.50,"list":[{"s":"a \"é\" \\ 😀 %d"}]}`, seed)))
		}
		// The calls begin in order, so that their order is known.
		var mixed []string
		for i := range queues {
			mixed, queues[i] = append(mixed, queues[i][0]), queues[i][1:]
		}
		for len(queues) > 0 {
			i := random.IntN(len(queues))
			mixed = append(mixed, queues[i][0])
			if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
				queues = append(queues[:i], queues[i+1:]...)
			}
		}
		stream, pieces, err := events(append(mixed, reply("STOP"))...)
		require.NoError(t, err, seed)
		require.Equal(t, want, stream.Response().ToolCalls, seed)
		require.ElementsMatch(t, want, dialecttest.Called(pieces), seed)
	}
}

func TestPathsToArguments(t *testing.T) {
	for path, want := range map[string]string{
		`$.a`: `{"a":1}`, `$['a']`: `{"a":1}`, `$["a.b"][0]`: `{"a.b":[1]}`, `$.a[0][0].b`: `{"a":[[{"b":1}]]}`,
		`$['it\'s "\\\u00e9"']`: `{"it's \"\\é\"":1}`, `$.é`: `{"é":1}`,
	} {
		_, pieces, err := events(goesOn(`"id":"a","name":"f"`), partial("a", path, `"numberValue":1`), reply("STOP", `{"functionCall":{"id":"a"}}`))
		require.NoError(t, err, path)
		assert.Equal(t, want, dialecttest.Called(pieces)[0].Function.Arguments, path)
	}
	for _, path := range []string{``, `$`, `a`, `$a`, `$.`, `$..a`, `$.a.`, `$[`, `$[]`, `$[-1]`, `$[*]`, `$['a'`, `$['a`, `$['\x']`, `$[0`, `$.a[99999999999999999999]`, `$` + strings.Repeat(".a", 65)} {
		assert.ErrorContains(t, noerr.Error2(events(goesOn(`"id":"a","name":"f"`), partial("a", path, `"numberValue":1`))), "functionCall.partialArgs[0].jsonPath: ", path)
	}
}

func TestBrokenStreamsAreRefused(t *testing.T) {
	begun := goesOn(`"id":"a","name":"f"`)
	one := partial("a", "$.a", `"numberValue":1`)
	for want, documents := range map[string][]string{
		"gemini stream: broke off: no finishReason came": {reply("", `{"text":"a"}`)},
		"is not JSON": {`{`},
		"the provider answered with UNAVAILABLE: ":                         {reply("", `{"text":"a"}`), `{"error":{"status":"UNAVAILABLE"}}`},
		"is missing, and no call is open":                                  {partial("b", "$.a", `"numberValue":1`)},
		"comes together with pieces of the arguments":                      {begun, reply("STOP", `{"functionCall":{"id":"a","args":{"a":1}}}`)},
		"another type than earlier values for this path":                   {begun, one, one},
		"partialArgs[0]: the value has another type":                       {begun, one, partial("a", "$.a.b", `"numberValue":1`)},
		"parts[0].functionCall.partialArgs[0]: the value has another type": {begun, partial("a", "$[0]", `"numberValue":1`), one},
		"the value has another type than":                                  {begun, partial("a", "$.a", `"stringValue":"x"`), partial("a", "$.a", `"stringValue":"y"`)},
		"the index skips elements of the array":                            {begun, partial("a", "$.a[1]", `"numberValue":1`)},
		"numberValue is not a JSON number":                                 {begun, partial("a", "$.a", `"numberValue":"NaN"`)},
		"ended within the arguments of the call":                           {begun, one, reply("STOP")},
	} {
		stream, _, err := events(documents...)
		dialecttest.Broken(t, New(), stream, err, want)
		assert.Equal(t, []tool.Call{}, stream.Response().ToolCalls)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	long, begun := strings.Repeat("x", 100_000), goesOn(`"id":"a","name":"f"`)
	_, pieces, err := dialecttest.Until(New(), func(n int) string {
		return map[bool]string{true: begun, false: partial("a", "$.a", `"stringValue":"`+long+`","willContinue":true`)}[n == 0]
	})
	require.ErrorContains(t, err, "has arguments of more than 1048576 bytes")
	assert.Equal(t, 11, pieces)
	require.ErrorContains(t, noerr.Error2(dialecttest.Until(New(), func(int) string { return reply("", `{"text":"`+long+`"}`) })), "has more than 8388608 bytes")
	_, calls, err := dialecttest.Until(New(), func(n int) string { return goesOn(fmt.Sprintf(`"id":"c%d","name":"f"`, n)) })
	require.ErrorContains(t, err, "more than 4096 calls")
	assert.Equal(t, wire.MaxCalls, calls)
}

// TestWrittenArgumentsAreBounded: escapes make them longer than their pieces.
func TestWrittenArgumentsAreBounded(t *testing.T) {
	var many strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&many, `,{"jsonPath":"$.a[%d]","stringValue":"%s"}`, n, strings.Repeat("\u2028", 20))
	}
	require.ErrorContains(t, noerr.Error2(events(goesOn(`"id":"a","name":"f","partialArgs":[`+many.String()[1:]+`]`), reply("STOP", `{"functionCall":{"id":"a"}}`))), "more than 1048576")
}

// TestPathsAreBounded: two bytes of a path can make a value, which takes a few hundred bytes of memory.
func TestPathsAreBounded(t *testing.T) {
	deep, sent := strings.Repeat(".a", 63), 0
	_, _, err := dialecttest.Until(New(), func(n int) string {
		document := goesOn(fmt.Sprintf(`"id":"c%d","name":"f","partialArgs":[{"jsonPath":"$.k%d%s","boolValue":true}]`, n%8, n, deep))
		sent += len(document)
		return document
	})
	require.ErrorContains(t, err, "more than 65536 values")
	require.Less(t, sent, dialects.MaxDocument/4)
}

// TestAStreamThatEndsWithDone: some servers that speak the format end it as OpenAI's do.
func TestAStreamThatEndsWithDone(t *testing.T) {
	part := `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}` + "\n\n"
	for _, transcript := range []string{part, part + "data: [DONE]\n\n"} {
		stream, _ := noerr.Get2(dialecttest.Feed(New(), transcript))(t)
		assert.Len(t, stream.Response().ToolCalls, 1)
	}
}
