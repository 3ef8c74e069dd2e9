package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// rpcError is an error as a client reads it.
type rpcError struct {
	ID    json.RawMessage `json:"id"`
	Error *struct {
		Code    int64
		Message string
	} `json:"error"`
}

// data returns the message of an answer that may be a stream of one event.
func data(answer string) string {
	_, text, isStream := strings.Cut(answer, "data: ")
	if !isStream {
		return answer
	}
	return strings.TrimSpace(text)
}

// meta are the params that requests without a session have.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// raw is a way to send one message as it is.
type raw struct {
	name string
	send func(t *testing.T, w *world, message string) (status int, answer string)
}

// raws are the ways to send one message. In HTTP without a session, method and name are said in headers as well.
func raws() []raw {
	me := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	return []raw{
		{"lines", func(t *testing.T, w *world, message string) (int, string) {
			out := noerr.Get(serve(t, w, hello+message+"\n"+`{"jsonrpc":"2.0","id":"last","method":"ping"}`+"\n"))(t)
			require.Contains(t, out, `"id":"last","result":{}`)
			var answers []string
			for line := range strings.Lines(out) {
				if !strings.Contains(line, `"id":"last"`) && !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1,`) {
					answers = append(answers, line)
				}
			}
			return 200, strings.Join(answers, "")
		}},
		{"sessions", func(t *testing.T, w *world, message string) (int, string) {
			_, _, header := post(t, w, me, http.MethodPost, initializeBody, nil)
			id := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")}
			status, answer, _ := post(t, w, me, http.MethodPost, message, id)
			_, _, _ = post(t, w, me, http.MethodDelete, "", id)
			return status, data(answer)
		}},
		{"stateless", func(t *testing.T, w *world, message string) (int, string) {
			var said struct {
				Method any
				Params any
			}
			_ = json.Unmarshal([]byte(message), &said)
			headers := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": fmt.Sprint(said.Method)}
			if params, ok := said.Params.(map[string]any); ok {
				for _, name := range []string{"name", "uri"} {
					if text, ok := params[name].(string); ok {
						headers["Mcp-Name"] = text
					}
				}
			}
			status, answer, _ := post(t, w, me, http.MethodPost, message, headers)
			return status, data(answer)
		}},
	}
}

// inner is what the SDK's own errors say.
var inner = regexp.MustCompile(`json:|jsonrpc2|unmarshal|mcp\.|%!|handling '|is invalid during|unsupported"`)

// TestErrorsAreInWords: a message that is wrong is answered with its code and in words that are not the SDK's, under
// its id or none, and a request that follows is answered.
func TestErrorsAreInWords(t *testing.T) {
	const id, none = "2", "null"
	w := newWorld(t, mcp.Options{}, newFake(t, "hello", nil, says(tool.Result{Success: true, Output: "hello"})))
	for _, r := range raws() {
		t.Run(r.name, func(t *testing.T) {
			for _, test := range []struct {
				message string // after the version
				code    int64
				id      string
			}{
				{`"id":2,"method":"prompts/list","params":{META}`, -32601, id},
				{`"id":2,"method":"prompts/list"`, -32601, id},
				{`"id":2,"method":"prompts/get","params":{"name":"x",META}`, -32601, id},
				{`"id":2,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"},META}`, -32601, id},
				{`"id":2,"method":"completion/complete"`, -32601, id},
				{`"id":2,"method":"resources/subscribe","params":{"uri":"x",META}`, -32601, id},
				{`"id":2,"method":"resources/unsubscribe","params":{"uri":"x",META}`, -32601, id},
				{`"id":2,"method":"no/such","params":{META}`, -32601, id},
				{`"id":2,"method":""`, -32601, id},
				{`"id":2,"method":"tools/call"`, -32602, id},
				{`"id":2,"method":"tools/call","params":null`, -32602, id},
				{`"id":2,"method":"tools/call","params":[1]`, -32602, id},
				{`"id":2,"method":"tools/call","params":{"name":1,META}`, -32602, id},
				{`"id":2,"method":"tools/call","params":{"name":"hello","requestState":5,META}`, -32602, id},
				{`"id":2,"method":"tools/call","params":{"name":"hello","inputResponses":{"a":5},"requestState":"x",META}`, -32602, id},
				{`"id":2,"method":"tools/call","params":{"name":"hello","inputResponses":{"a":{"b":1}},"requestState":"x",META}`, -32602, id},
				{`"id":2,"method":"tools/list","params":{"cursor":5,META}`, -32602, id},
				{`"id":2,"method":"tools/list","params":{"_meta":5}`, -32602, id},
				{`"id":2,"method":"tools/list","params":{"_meta":{"progressToken":1e300}}`, -32602, id},
				{`"id":2,"method":"tools/list","params":{"_meta":{"progressToken":{}}}`, -32602, id},
				{`"id":2,"method":"resources/read","params":{"uri":"file:///x",META}`, -32602, id},
				{`"id":2,"method":"resources/read","params":{"uri":"caisson://output/x",META}`, -32602, id},
				{`"id":2,"method":"resources/list","params":{"cursor":"x",META}`, -32602, id},
				{`"id":2,"method":"subscriptions/listen","params":{"notifications":5,META}`, -32602, id},
				{`"id":2,"method":"initialize","params":{"protocolVersion":5}`, -32602, id},
				{`"id":2,"method":"notifications/initialized","params":{META}`, -32600, id},
				{`"id":9223372036854775808,"method":"ping","params":{META}`, -32600, none},
				{`"id":9007199254740993,"method":"ping","params":{META}`, -32600, none},
				{`"id":1e300,"method":"ping","params":{META}`, -32600, none},
				{`"id":2.5,"method":"ping","params":{META}`, -32600, none},
				{`"id":null,"method":"ping","params":{META}`, -32600, none},
				{`"id":{},"method":"ping","params":{META}`, -32600, none},
				{`"id":2,"id":3,"method":"ping","params":{META}`, -32600, none},
				{`"id":2,"method":5`, -32600, none},
				{`"id":2,"error":5`, -32600, none},
				{`"result":{}`, -32600, none},
				{`"id":2,"method":"tools/call","params":{"name":"hello","arguments":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, -32600, none},
			} {
				with := meta
				if r.name != "stateless" {
					with = `"a":0`
				}
				status, answer := r.send(t, w, `{"jsonrpc":"2.0",`+strings.ReplaceAll(test.message, "META", with)+"}")
				var found rpcError
				require.NoError(t, json.Unmarshal([]byte(answer), &found), "%s: %d %s", test.message, status, answer)
				require.NotNil(t, found.Error, "%s: %d %s", test.message, status, answer)
				if r.name == "sessions" && strings.Contains(test.message, "subscriptions/listen") {
					test.code = -32601 // they are of the revision without sessions
				}
				assert.Equal(t, test.code, found.Error.Code, "%s: %s", test.message, answer)
				assert.Equal(t, test.id, string(found.ID), "%s: %s", test.message, answer)
				assert.NotRegexp(t, inner, answer, test.message)
				switch {
				case r.name == "lines":
				case r.name == "stateless" && test.code == -32601:
					assert.Equal(t, http.StatusNotFound, status, test.message)
				case r.name == "stateless" || test.id == none:
					assert.Equal(t, http.StatusBadRequest, status, test.message)
				default:
					assert.Equal(t, http.StatusOK, status, test.message)
				}
			}
			for _, message := range []string{`5`, `[]`, `[5]`, `{}`, `{"jsonrpc":"1.0","id":2,"method":"ping"}`, `{"id":2,"method":"ping"}`} {
				_, answer := r.send(t, w, message)
				assert.Contains(t, answer, `"id":null,"error":{"code":-32600,`, message)
				assert.NotRegexp(t, inner, answer, message)
			}
			for _, id := range []string{`"a"`, `9007199254740991`, `-9007199254740991`, `0`, `""`} { // the control
				_, answer := r.send(t, w, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list","params":{`+meta+`}}`)
				if r.name == "sessions" {
					_, answer = r.send(t, w, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`)
				}
				assert.Contains(t, answer, `"id":`+id+`,"result"`)
			}
		})
	}
}

// TestMessagesBeforeASession: what needs a session is refused before there is one, and a session begins once.
func TestMessagesBeforeASession(t *testing.T) {
	w := newWorld(t, mcp.Options{})
	me := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	const want = `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"there is no session yet; begin one with initialize"}}`
	out := noerr.Get(serve(t, w, list+"\n"+hello+strings.Replace(list, "2,", "3,", 1)+"\n"+strings.Replace(initializeBody, `"id":1`, `"id":4`, 1)+"\n"))(t)
	assert.Contains(t, out, want)
	assert.Contains(t, out, `"id":3,"result"`, "the control")
	assert.Contains(t, out, `"id":4,"error":{"code":-32600,"message":"the session has already begun"`)
	_, answer, _ := post(t, w, me, http.MethodPost, list, nil)
	assert.Equal(t, want, answer)
}

// TestAttackLargeBatch: a batch of more messages than a request of the HTTP API has calls is refused, and none runs.
// The control is one of as many.
func TestAttackLargeBatch(t *testing.T) {
	var ran atomic.Int64
	w := newWorld(t, mcp.Options{}, newFake(t, "hello", nil, func(context.Context, tool.Invocation) tool.Result {
		ran.Add(1)
		return tool.Result{Success: true, Output: "hello"}
	}))
	batch := func(n int) string {
		var messages []string
		for i := range n {
			messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","id":"b%d","method":"tools/call","params":{"name":"hello"}}`, i))
		}
		return "[" + strings.Join(messages, ",") + "]"
	}
	const refused = `"id":null,"error":{"code":-32600,"message":"a batch has from 1 to 1024 messages, and this one 1025"`
	t.Run("lines", func(t *testing.T) {
		c := openLines(t, w)
		c.send(batch(1025))
		assert.Contains(t, c.line(), refused)
		assert.Zero(t, ran.Load())
		c.send(batch(1024))
		for range 1024 {
			assert.Contains(t, c.line(), `"text":"hello"`)
		}
	})
	t.Run("sessions", func(t *testing.T) { // later revisions have no batches
		ran.Store(0)
		send := raws()[1].send
		_, answer := send(t, w, batch(1025))
		assert.Contains(t, answer, refused)
		assert.Zero(t, ran.Load())
		_, _ = send(t, w, batch(1024))
		assert.EqualValues(t, 1024, ran.Load())
	})
}

// TestAttackEqualIDs: ids of a batch that are equal, however they are written, are refused, since one answer would be for
// two calls. The control are ids that differ.
func TestAttackEqualIDs(t *testing.T) {
	w := newWorld(t, mcp.Options{}, newFake(t, "hello", nil, says(tool.Result{Success: true, Output: "hello"})))
	for _, test := range []struct {
		first, second string
		refused       bool
	}{{"1", "1", true}, {"1", "1.0", true}, {"10", "1e1", true}, {"0", "-0", true}, {`"a"`, `"\u0061"`, true}, {"1", `"1"`, false}} {
		call := `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"hello"}}`
		_, answer := raws()[1].send(t, w, fmt.Sprintf("["+call+","+call+"]", test.first, test.second))
		assert.Equal(t, test.refused, strings.Contains(answer, "the id is that of another message"), "%s: %s", test.second, answer)
	}
}

// TestBodies: a body is as long as the option says.
func TestBodies(t *testing.T) {
	w := newWorld(t, mcp.Options{Body: 1000})
	me := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	for more, want := range map[int]int{0: http.StatusOK, 1: http.StatusRequestEntityTooLarge} {
		status, answer, _ := post(t, w, me, http.MethodPost, initializeBody+strings.Repeat(" ", 1000-len(initializeBody)+more), nil)
		assert.Equal(t, want, status, answer)
	}
	assert.ErrorContains(t, noerr.Error(mcp.New(w.host, mcp.Options{Body: -1})), "negative")
}

// Params, results and errors with many small values take hundreds of bytes of memory for each once they are decoded.
// The arguments of a call are passed on undecoded, and have limits of their own.
func TestAttackManyValues(t *testing.T) {
	w := newWorld(t, mcp.Options{}, newFake(t, "hello", nil, func(context.Context, tool.Invocation) tool.Result {
		return tool.Result{Success: true, Output: "hello"}
	}))
	values := func(n int) string { return "[" + strings.Repeat("[],", n-1) + "[]]" }
	call := func(extra, inArguments int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"v","method":"tools/call","params":{"name":"hello","arguments":{"list":%s},%s,"x":%s}}`, values(inArguments), meta, values(extra))
	}
	const refused = "the messages have more than 20000 values outside the arguments of calls"
	for _, by := range raws() {
		t.Run(by.name, func(t *testing.T) {
			_, answer := by.send(t, w, call(20_000, 1))
			assert.Contains(t, answer, refused)
			_, answer = by.send(t, w, strings.Replace(call(1, 1), `"_meta":{`, `"_meta":{"more":`+values(20_000)+",", 1))
			assert.Contains(t, answer, refused)
			_, answer = by.send(t, w, call(1000, 50_000)) // the control
			assert.Contains(t, answer, `"id":"v"`)
			assert.NotContains(t, answer, refused)
		})
	}
	half := strings.Replace(call(12_000, 1), `"id":"v"`, `"id":"w"`, 1)
	c := openLines(t, w)
	c.send("[" + call(12_000, 1) + "," + half + "]") // together they have too many
	assert.Contains(t, c.line(), refused)
	c.send(half)
	assert.NotContains(t, c.line(), refused)
}

// TestAttackLongParams: the params of messages that are no calls are short, and so are ids and progress tokens. A
// session kept those of initialize, of notifications/initialized and of logging/setLevel for an hour: a client's name of
// 15 MB took 55 MB, and a caller may have a hundred sessions. The controls are short ones, and long arguments.
func TestAttackLongParams(t *testing.T) {
	w := newWorld(t, mcp.Options{}, newFake(t, "hello", nil, says(tool.Result{Success: true, Output: "hello"})))
	const params, short = "over the limit of 65536", "a string of at most 1024 bytes"
	long := strings.Repeat("a", 64<<10)
	call := func(id, token, argument string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"hello","arguments":{"x":%q},%s}}`, id, argument, strings.Replace(meta, `{`, fmt.Sprintf(`{"progressToken":%q,`, token), 1))
	}
	for _, by := range raws() {
		for _, test := range []struct{ name, message, refused string }{
			{"a level", fmt.Sprintf(`{"jsonrpc":"2.0","id":"v","method":"logging/setLevel","params":{"level":%q,%s}}`, long, meta), params},
			{"what nobody reads", fmt.Sprintf(`{"jsonrpc":"2.0","id":"v","method":"ping","params":{"x":%q,%s}}`, long, meta), params},
			{"many values", `{"jsonrpc":"2.0","id":"v","method":"ping","params":{"x":[` + strings.Repeat("1,", 500) + `1],` + meta + `}}`, "more than 500 values"},
			{"an id", call(long[:1023], "t", "a"), "the id of a request is " + short},
			{"a progress token", call("v", long[:1023], "a"), "params._meta.progressToken is " + short},
			{"control: short ones", call(long[:1022], long[:1022], "a"), ""},
			{"control: long arguments", call("v", "t", strings.Repeat("a", 512<<10)), ""},
		} {
			t.Run(by.name+"/"+test.name, func(t *testing.T) {
				message := test.message
				if by.name == "sessions" {
					message = strings.Replace(message, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, "", 1)
				}
				_, answer := by.send(t, w, message)
				if test.refused != "" {
					assert.Contains(t, answer, test.refused)
					return
				}
				assert.Contains(t, answer, `"result":`)
			})
		}
	}
	me := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	named := func(bytes int) string {
		return strings.Replace(initializeBody, `"name":"x"`, fmt.Sprintf(`"name":%q`, long[:bytes]), 1)
	}
	_, answer, header := post(t, w, me, http.MethodPost, named(len(long)), nil)
	assert.Contains(t, answer, params)
	assert.Empty(t, header.Get("Mcp-Session-Id"), "nothing has begun")
	_, answer, header = post(t, w, me, http.MethodPost, named(32<<10), nil) // the control
	assert.Contains(t, answer, "serverInfo")
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")}
	for text, status := range map[string]int{long: http.StatusBadRequest, "short": http.StatusAccepted} {
		got, answer, _ := post(t, w, me, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/initialized","params":{"_meta":{"x":%q}}}`, text), session)
		assert.Equal(t, status, got, "%.200s", answer)
	}
}
