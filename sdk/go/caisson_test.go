package caisson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOutsideCaisson(t *testing.T) {
	_, err := Do(Request{URL: "https://example.com/"})
	require.ErrorIs(t, err, ErrOutside)
	_, err = SecretExists("KEY")
	require.ErrorIs(t, err, ErrOutside)
	_, err = CallTool("web_search", nil)
	require.ErrorIs(t, err, ErrOutside)
	_, err = Context()
	require.ErrorIs(t, err, ErrOutside)
	for _, err := range []error{
		EmitText("a"), EmitJSON(1), EmitProgress(0.5, "a"), EmitImage("image/png", []byte{1}, false), EmitLink("https://example.com/", "a"),
	} {
		require.ErrorIs(t, err, ErrOutside)
	}
	results := DoAll(make([]Request, 12))
	require.Len(t, results, 12)
	for _, result := range results {
		require.ErrorIs(t, result.Err, ErrOutside)
	}
}

func TestTimeoutIsRoundedUp(t *testing.T) {
	for duration, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Minute: 60000,
		math.MaxInt64: math.MaxUint32, -time.Second: -1000,
	} {
		assert.Equal(t, want, milliseconds(duration), duration)
	}
}

// TestWhatTheHostCouldNotRead: text that JSON would change is rejected before it is sent.
func TestWhatTheHostCouldNotRead(t *testing.T) {
	for _, request := range []Request{
		{Method: "G\xff"}, {URL: "https://example.com/\xff"},
		{Headers: [][2]string{{"X\xff", ""}}}, {Headers: [][2]string{{"A", "b"}, {"X", "\xff"}}},
	} {
		h := &host{}
		_, err := do(h.function("f"), request)
		require.ErrorIs(t, err, Invalid)
		assert.Empty(t, h.requests)
	}
}

func TestDefaults(t *testing.T) {
	h := &host{status: NotFound, response: []byte(`{}`)}
	_, err := do(h.function("f"), Request{URL: "https://example.com/"})
	assert.Equal(t, &Error{Op: "f", Status: NotFound}, err)
	assert.Equal(t, []string{`{"method":"GET","url":"https://example.com/","headers":[]}`}, h.requests)
}

func TestMalformedAnswers(t *testing.T) {
	for _, h := range []host{
		{response: nil},
		{response: []byte{1, 0, 0}},
		{response: []byte("\x05\x00\x00\x00{}")},
		{response: []byte("\xff\xff\xff\xff{}")},
		{response: []byte("\x02\x00\x00\x00[]")},
		{response: []byte("\x02\x00\x00\x00{}"), length: 100},
		{status: Denied, response: []byte("no JSON")},
		{status: Limit, response: []byte(`{"limit":1}`)},
		{status: IO, response: []byte(`"io"`)},
	} {
		_, err := do(h.function("f"), Request{})
		assert.Equal(t, &Error{Op: "f", Status: IO, Message: "the host's answer is malformed"}, err)
	}
	h := host{response: []byte("[]")}
	_, err := secretExists(h.function("f"), "A")
	require.ErrorIs(t, err, IO)
	_, err = start(h.function("f"), Request{})
	require.ErrorIs(t, err, IO)
	for _, answer := range []string{`[]`, `{}`, `{"result":null}`, `{"result":""}`, `{"result":"[]"}`, `{"result":"{}"}`, `{"result":{"success":true}}`, `{"result":"{\"success\":1}"}`} {
		h := host{response: []byte(answer)}
		_, err := callTool(h.function("f"), "a", nil)
		require.ErrorIs(t, err, IO, answer)
	}
	for _, answer := range []string{``, `[]`, `null`, `{}`, `{"call_id":1}`, `{"call_id":"1","files":{}}`} {
		h := host{response: []byte(answer)}
		_, err := callContext(h.function("f"))
		require.ErrorIs(t, err, IO, answer)
	}
	greedy := hostFunction{"f", h.call, func(buffer []byte) int { return len(buffer) + 1 }}
	_, err = greedy.ask(nil, nil)
	require.ErrorIs(t, err, IO)
}

func TestErrors(t *testing.T) {
	for text, err := range map[string]*Error{
		"denied: network https://a.example/: no grant": {Status: Denied, Denial: &Denial{Permission: "network", Value: "https://a.example/", Rule: "no grant"}},
		"limit: http_calls is 20":                      {Status: Limit, LimitName: "http_calls", LimitValue: 20},
		"limit: too deep":                              {Status: Limit, LimitName: "tool_calls", LimitValue: 3, Message: "too deep"},
		"deadline: no answer":                          {Status: Deadline, Message: "no answer"},
		"not found":                                    {Status: NotFound},
		"status 99":                                    {Status: 99},
	} {
		assert.EqualError(t, err, text)
		wrapped := fmt.Errorf("while fetching: %w", err)
		assert.ErrorIs(t, wrapped, err.Status)
		for _, other := range []Status{statusOK, Denied, Invalid, Limit, Deadline, NotFound, IO, Unavailable} {
			assert.Equal(t, other == err.Status, errors.Is(wrapped, other))
		}
	}
}

func TestHeader(t *testing.T) {
	r := Response{Headers: [][2]string{{"Content-Type", "text/html"}, {"X", "1"}, {"x", "2"}}}
	assert.Equal(t, "text/html", r.Header("content-TYPE"))
	assert.Equal(t, "1", r.Header("x"))
	assert.Empty(t, r.Header("y"))
}

// network is a host that handles several requests concurrently.
type network struct {
	host
	flying []int64 // by id
	most   int     // concurrent requests at any time
	next   int64
}

// send starts a request, or fails if its URL contains "bad".
func (n *network) send(request, _ []byte) (uint64, error) {
	if strings.Contains(string(request), "bad") {
		return n.answer(Invalid, `{"message":"bad"}`), nil
	}
	n.next++
	n.flying = append(n.flying, n.next)
	n.most = max(n.most, len(n.flying))
	return n.answer(statusOK, fmt.Sprintf(`{"id":%d}`, n.next)), nil
}

func (n *network) receive(request, _ []byte) (uint64, error) {
	var id wireID
	if err := json.Unmarshal(request, &id); err != nil {
		return 0, err
	}
	if !slices.Contains(n.flying, id.ID) {
		return n.answer(Invalid, `{"message":"unknown"}`), nil
	}
	n.flying = slices.DeleteFunc(n.flying, func(flying int64) bool { return flying == id.ID })
	if id.ID%5 == 0 {
		return n.answer(IO, `{"message":"lost"}`), nil
	}
	header := fmt.Sprintf(`{"status":%d}`, id.ID)
	return n.answer(statusOK, string([]byte{byte(len(header)), 0, 0, 0})+header), nil
}

func (n *network) answer(status Status, response string) uint64 {
	n.left = []byte(response)
	return uint64(status)<<32 | uint64(len(response))
}

func TestDoAll(t *testing.T) {
	for _, count := range []int{0, 1, maxInFlight, maxInFlight + 1, 35} {
		n := &network{}
		requests := make([]Request, count)
		for i := range requests {
			if requests[i].URL = "https://example.com/"; i%7 == 3 {
				requests[i].URL += "bad"
			}
		}
		results := doAll(hostFunction{"send", n.send, n.read}, hostFunction{"receive", n.receive, n.read}, requests)
		require.Len(t, results, count)
		id := 0
		for i, result := range results {
			if i%7 == 3 {
				require.ErrorIs(t, result.Err, Invalid)
				continue
			}
			if id++; id%5 == 0 {
				require.ErrorIs(t, result.Err, IO)
				continue
			}
			require.NoError(t, result.Err)
			assert.Equal(t, id, result.Response.Status, "in order")
		}
		assert.Empty(t, n.flying)
		assert.LessOrEqual(t, n.most, maxInFlight)
		assert.GreaterOrEqual(t, n.most, min(id, maxInFlight))
	}
}

// TestAllowOfADenial: a rule that is not missing is nil, also after it is encoded and decoded.
func TestAllowOfADenial(t *testing.T) {
	h := host{status: Denied, response: []byte(`{"permission":"network","value":"v","rule":"r","allow":{"manifest":null,"grant":{"tools":["a"],"network":[{"host":"b.example"}]}}}`)}
	_, err := do(h.function("f"), Request{})
	var failure *Error
	require.ErrorAs(t, err, &failure)
	allow := failure.Denial.Allow
	assert.Nil(t, allow.Manifest)
	assert.JSONEq(t, `{"tools":["a"],"network":[{"host":"b.example"}]}`, string(allow.Grant))
	again := parsed[Denial](t, string(asJSON(t, failure.Denial)))
	assert.Equal(t, failure.Denial, &again)
	assert.Zero(t, parsed[Denial](t, `{"allow":{"manifest":null,"grant":null}}`))
	h.response = []byte(`{"permission":"network","allow":"none"}`)
	_, err = do(h.function("f"), Request{})
	assert.ErrorIs(t, err, IO)
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}

// FuzzResponse: for any answer of the host, the SDK returns a response or an error.
func FuzzResponse(f *testing.F) {
	f.Add(uint32(0), []byte("\x02\x00\x00\x00{}body"))
	f.Add(uint32(1), []byte(`{"permission":"network"}`))
	f.Add(uint32(3), []byte(`{"limit":"http_calls","value":20}`))
	f.Fuzz(func(t *testing.T, status uint32, answer []byte) {
		h := host{status: Status(status), response: answer}
		response, err := do(h.function("f"), Request{})
		checkEither(t, response == nil, err)
	})
}

// checkEither checks that a function returned either a result or an [*Error].
func checkEither(t *testing.T, none bool, err error) {
	t.Helper()
	require.NotEqual(t, none, err == nil)
	if none {
		require.ErrorAs(t, err, new(*Error))
		require.NotEmpty(t, err.Error())
	}
}

// TestEmissionsThatJSONWouldChange are rejected before they are sent, like those that JSON cannot encode.
func TestEmissionsThatJSONWouldChange(t *testing.T) {
	for name, emit := range map[string]func(hostFunction) error{
		"text":             func(f hostFunction) error { return emitText(f, "a\xff") },
		"title":            func(f hostFunction) error { return emitLink(f, "https://example.com/", "\xff") },
		"URL":              func(f hostFunction) error { return emitLink(f, "https://example.com/\xff", "") },
		"media type":       func(f hostFunction) error { return emitImage(f, "image/\xff", []byte{1}, false) },
		"value":            func(f hostFunction) error { return emitJSON(f, func() {}) },
		"number":           func(f hostFunction) error { return emitJSON(f, math.Inf(1)) },
		"no JSON":          func(f hostFunction) error { return emitJSON(f, json.RawMessage("{")) },
		"fraction":         func(f hostFunction) error { return emitProgress(f, 1.5, "a") },
		"no number at all": func(f hostFunction) error { return emitProgress(f, math.NaN(), "a") },
	} {
		h := &host{}
		assert.ErrorIs(t, emit(h.function("f")), Invalid, name)
		assert.Empty(t, h.requests, name)
	}
}

// TestEmissionsAreNoLongerThanTheyMust: the length of requests counts against the call's limit.
func TestEmissionsAreNoLongerThanTheyMust(t *testing.T) {
	h := &host{}
	require.NoError(t, emitText(h.function("f"), "<&>"))
	require.NoError(t, emitJSON(h.function("f"), map[string]string{"a": "<&>"}))
	require.NoError(t, emitJSON(h.function("f"), nil))
	assert.Equal(t, []string{`{"type":"text","text":"<&>"}`, `{"type":"json","data":{"a":"<&>"}}`, `{"type":"json","data":null}`}, h.requests)
}

// TestArgumentsOfCalls: only values that JSON encodes as objects are sent, with numbers unchanged.
func TestArgumentsOfCalls(t *testing.T) {
	const done = `{"call_id":"1","result":"{\"success\":true,\"data\":null}"}`
	type query struct {
		Text string `json:"text"`
	}
	for _, test := range []struct {
		arguments any
		request   string
	}{
		{nil, `{"name":"a","arguments":{}}`},
		{map[string]any{}, `{"name":"a","arguments":{}}`},
		{map[string]any{"b": 1}, `{"name":"a","arguments":{"b":1}}`},
		{query{"x"}, `{"name":"a","arguments":{"text":"x"}}`},
		{&query{"x"}, `{"name":"a","arguments":{"text":"x"}}`},
		{json.RawMessage(`{"n":1.50e400}`), `{"name":"a","arguments":{"n":1.50e400}}`},
	} {
		h := &host{response: []byte(done)}
		result, err := callTool(h.function("f"), "a", test.arguments)
		require.NoError(t, err)
		assert.Equal(t, &ToolResult{Success: true, CallID: "1"}, result)
		assert.Equal(t, []string{test.request}, h.requests)
	}
	for _, arguments := range []any{"text", 1, []int{1}, json.RawMessage(`{`), json.RawMessage(nil), (*query)(nil), func() {}, make(chan int)} {
		h := &host{response: []byte(done)}
		_, err := callTool(h.function("f"), "a", arguments)
		require.ErrorIs(t, err, Invalid)
		assert.Empty(t, h.requests)
	}
	h := &host{response: []byte(done)}
	_, err := callTool(h.function("f"), "a\xff", nil)
	require.ErrorIs(t, err, Invalid)
	assert.Empty(t, h.requests)
}

// FuzzToolResult: for any answer of the host, the SDK returns a result or an error.
func FuzzToolResult(f *testing.F) {
	f.Add(uint32(0), []byte(`{"call_id":"1","result":"{\"success\":false,\"error\":\"no\",\"kind\":\"denied\"}","denials":[{"permission":"files"}]}`))
	f.Add(uint32(1), []byte(`{"permission":"tools"}`))
	f.Add(uint32(3), []byte(`{"limit":"tool_calls","value":20,"message":"too many"}`))
	f.Fuzz(func(t *testing.T, status uint32, answer []byte) {
		h := host{status: Status(status), response: answer}
		result, err := callTool(h.function("f"), "a", nil)
		checkEither(t, result == nil, err)
	})
}
