package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/tool"
)

func TestCall(t *testing.T) {
	w := newWorld(t, rest.Options{})
	for name, c := range map[string]struct {
		body    string
		success bool
		result  string // a part of it
		kind    tool.Kind
	}{
		"a success":            {`{"id":"c1","name":"calculator","arguments":{"expression":"2+2"}}`, true, `"value":4`, ""},
		"arguments as text":    {`{"name":"calculator","arguments":"{\"expression\":\"2+2\"}"}`, true, `"value":4`, ""},
		"a permission":         {`{"name":"file_read","arguments":{"path":"/project/notes.txt"}}`, true, `dig`, ""},
		"a denial":             {`{"name":"file_read","arguments":{"path":"/etc/passwd"}}`, false, "no granted directory", tool.Denied},
		"a tool that fails":    {`{"name":"file_read","arguments":{"path":"/project/none"}}`, false, "", tool.ToolFailed},
		"an unknown tool":      {`{"name":"calculater","arguments":{}}`, false, "did you mean calculator", tool.UnknownTool},
		"wrong arguments":      {`{"name":"calculator","arguments":{"expression":[]}}`, false, "expression", tool.InvalidArguments},
		"a repetition in text": {`{"name":"calculator","arguments":"{\"expression\":\"1\",\"expression\":\"2\"}"}`, false, "twice", tool.InvalidArguments},
		"a forged context":     {`{"name":"file_read","arguments":{"path":"/project/notes.txt","Project_ID":"p2"}}`, false, "host fills in project_id", tool.Denied},
		"no arguments":         {`{"name":"echo"}`, true, "{}", ""},
		"null for arguments":   {`{"name":"echo","arguments":null}`, true, "{}", ""},
		"null, nested":         {`{"function":{"name":"echo","arguments":null}}`, true, "{}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			record := of[tool.Record](w.request("POST", "/v1/calls", "ada", c.body), 200)
			assert.Equal(t, c.success, record.Result.Success, "%+v", record.Result)
			assert.Equal(t, c.kind, record.Result.Kind)
			text := noerr.Get(json.Marshal(record.Result))(t)
			assert.Contains(t, string(text), c.result)
			assert.Len(t, record.CallID, 36)
		})
	}
}

// TestArgumentsAreAsWritten: digits, the order of members and the spelling of strings reach the tool.
func TestArgumentsAreAsWritten(t *testing.T) {
	w := newWorld(t, rest.Options{})
	written := `{"z":9007199254740993, "a":1.50,"m":{"y":1e2,"b":"\u00fc"} }`
	record := of[tool.Record](w.request("POST", "/v1/calls", "ada", `{"name":"echo","arguments":`+written+`}`), 200)
	assert.Equal(t, written, record.Function.Arguments)
	assert.Equal(t, `{"z":9007199254740993,"a":1.50,"m":{"y":1e2,"b":"\u00fc"}}`, strings.ReplaceAll(record.Result.Output, ", ", ","))
}

// TestNestedCalls: calls may have the form of chat completions, alone and in batches.
func TestNestedCalls(t *testing.T) {
	w := newWorld(t, rest.Options{})
	written := `{"id":"call_1","type":"function","function":{"name":"echo","arguments":"{\"a\": 1.50}"}}`
	one := of[tool.Record](w.request("POST", "/v1/calls", "ada", written), 200)
	assert.Equal(t, tool.Function{Name: "echo", Arguments: `{"a": 1.50}`}, one.Function)
	assert.Equal(t, "call_1", one.ID)
	assert.True(t, one.Result.Success, one.Result.Error)
	batch := of[run](w.request("POST", "/v1/batches", "ada", `{"calls":[`+written+`,{"function":{"name":"echo"}},{"type":"custom","custom":{"name":"echo","input":"text"}}]}`), 200)
	require.Len(t, batch.Records, 3)
	assert.Equal(t, one.Result.Output, batch.Records[0].Result.Output)
	assert.Equal(t, tool.FunctionCall, batch.Records[1].Type)
	assert.Equal(t, tool.CustomCall, batch.Records[2].Type)
	assert.Equal(t, "text", batch.Records[2].Function.Arguments)
	assert.Contains(t, batch.Records[2].Result.Error, "takes a JSON object, and no free text")
}

// TestWrongBodies: a request that is wrong is refused, and nothing is called.
func TestWrongBodies(t *testing.T) {
	w := newWorld(t, rest.Options{Body: 10_000})
	for body, c := range map[string]struct {
		path   string
		status int
		detail string
	}{
		`{`:                             {"/v1/calls", 400, "cannot be read at byte 1"},
		``:                              {"/v1/calls", 400, "cannot be read at byte 0"},
		`[]`:                            {"/v1/calls", 400, "the body must be an object"},
		`{} {}`:                         {"/v1/calls", 400, "text follows the value"},
		`{}`:                            {"/v1/calls", 400, "the call has no name: the name of a tool"},
		`{"name":"echo","session":""}`:  {"/v1/calls", 400, "session is empty"},
		"{\"name\":\"\xff\"}":           {"/v1/calls", 400, "not valid UTF-8"},
		`{"name":"echo","name":"wipe"}`: {"/v1/calls", 400, `the name "name" occurs twice in one object, in name`},
		`{"name":"echo","arguments":{"a":1,"a":2}}`:     {"/v1/calls", 400, `the name "a" occurs twice in one object, in arguments.a`},
		`{"name":"echo","Name":"wipe"}`:                 {"/v1/calls", 400, "Name is unknown; the members are arguments, custom, function, id, name"},
		`{"function":{"name":"echo"},"name":"wipe"}`:    {"/v1/calls", 400, "the call has name beside function"},
		`{"arguments":{},"function":{"name":"echo"}}`:   {"/v1/calls", 400, "the call has arguments beside function"},
		`{"function":{"name":"echo","input":"x"}}`:      {"/v1/calls", 400, "function.input is unknown; the members are arguments, name"},
		`{"function":{"arguments":{}}}`:                 {"/v1/calls", 400, "the call has no name"},
		`{"function":{"name":"echo"},"custom":{}}`:      {"/v1/calls", 400, "custom cannot stand beside function"},
		`{"type":"custom","function":{"name":"echo"}}`:  {"/v1/calls", 400, `write {"type":"function","function":{…}}`},
		`{"name":"echo","context":{"project_id":"p2"}}`: {"/v1/calls", 400, "context is unknown"},
		`{"name":"echo","tenant":"evil"}`:               {"/v1/calls", 400, "tenant is unknown"},
		`{"name":1}`:                                    {"/v1/calls", 400, "name must be a string"},
		`{"name":"echo","arguments":[]}`:                {"/v1/calls", 400, "arguments must be an object"},
		`{"name":"echo","type":"shell"}`:                {"/v1/calls", 400, "type must be function, custom or local_shell"},
		`{"name":"echo","timeout_seconds":-1}`:          {"/v1/calls", 400, "timeout_seconds must be a number from 0"},
		`{"name":"echo","session":"a b"}`:               {"/v1/calls", 400, "visible ASCII"},
		`{"name":"echo","arguments":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`:                       {"/v1/calls", 400, "nested too deeply"},
		`{"name":"echo","arguments":{"a":"` + strings.Repeat("x", 10_000) + `"}}`:                                             {"/v1/calls", 413, "longer than 10000 bytes"},
		`{"calls":[],"response":null,"dialect":"","tools":[{}],"requests":{"echo":{}},"timeout_seconds":1.5,"session":"a b"}`: {"/v1/batches", 400, "visible ASCII"},
		`{"calls":[],"response":{}}`: {"/v1/batches", 400, "either calls or a response"},
		`{"session":"s"}`:            {"/v1/batches", 400, "either calls or a response"},
		`{"calls":[{"function":{"name":"echo"},"name":"wipe"}]}`:               {"/v1/batches", 400, "calls[0] has name beside function"},
		`{"calls":[{"id":"1"}]}`:                                               {"/v1/batches", 400, "calls[0] has no name"},
		`{"calls":[{"name":"echo","x":1}]}`:                                    {"/v1/batches", 400, "calls[0].x is unknown"},
		`{"response":{"what":1}}`:                                              {"/v1/batches", 422, "response: "},
		`{"dialect":"esperanto","response":{}}`:                                {"/v1/batches", 400, "dialect: it must be openai"},
		`{"dialect":"anthropic","response":{"choices":[]}}`:                    {"/v1/batches", 422, "response: "},
		`{"calls":[{"name":"echo"}],"requests":{"echo":{"values":{"a":1}}}}`:   {"/v1/batches", 400, "requests.echo.values.a must be a string"},
		`{"calls":[{"name":"echo"}],"requests":{"echo":{"definition":[]}}}`:    {"/v1/batches", 400, "requests.echo.definition must be an object"},
		`{"name":"echo","session":null}`:                                       {"/v1/calls", 400, "session must be a string"},
		`{"name":"echo","timeout_seconds":null}`:                               {"/v1/calls", 400, "timeout_seconds must be a number"},
		`{"name":"echo","requests":null}`:                                      {"/v1/calls", 400, "requests must be an object"},
		`{"calls":null}`:                                                       {"/v1/batches", 400, "calls must be an array"},
		`{"response":null}`:                                                    {"/v1/batches", 400, "either calls or a response"},
		`{"dialect":"mcp","agent":null}`:                                       {"/v1/definitions", 400, "agent must be a string"},
		`{"calls":[],"tools":[{"type":"function","name":"f","parameters":1}]}`: {"/v1/batches", 422, "tools[0].parameters must be an object"},
		`{"calls":[],"tools":[{"type":"custom","name":"f","format":"x"}]}`:     {"/v1/batches", 422, "tools[0].format must be an object"},
		`{"calls":[],"tools":[{"type":"function","name":1}]}`:                  {"/v1/batches", 422, "tools[0].name must be a string"},
	} {
		detail := w.request("POST", c.path, "ada", body).refused(c.status)
		assert.Contains(t, detail, c.detail, body)
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "a/b/c"} {
		w.request("POST", "/v1/calls", "ada", `{"name":"wipe","arguments":{"what":"x"}}`, "Content-Type", kind).refused(415)
	}
	of[tool.Record](w.request("POST", "/v1/calls", "ada", `{"name":"echo"}`, "Content-Type", "application/json; charset=utf-8"), 200)
	assert.Contains(t, w.request("POST", "/v1/calls", "ada", `{"name":"echo"}`, "Content-Encoding", "gzip").refused(415), "not be compressed")
	w.request("PUT", "/v1/agents/clerk", "ada", `{"allowed_tools":null}`).refused(400)
	assert.Empty(t, w.wipes())
}

// TestCallEndsWithItsClient: a client that goes away cancels its call, and not those of others.
func TestCallEndsWithItsClient(t *testing.T) {
	w := newWorld(t, rest.Options{})
	for _, path := range []string{"/v1/calls", "/v1/batches"} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			body := `{"name":"wait"}`
			if path == "/v1/batches" {
				body = `{"calls":[` + body + `]}`
			}
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				response, err := w.try(ctx, "POST", path, "ada", body, "Accept", accept)
				if err == nil {
					_, _ = io.Copy(io.Discard, response.Body) // until leave: closing it earlier would cancel the call before it starts
					_ = response.Body.Close()
				}
			}()
			<-w.waiting
			leave()
			<-w.stopped
			<-gone
		}
	}
	answers := make(chan answered, 1)
	go func() { answers <- w.request("POST", "/v1/calls", "ada", `{"name":"wait"}`) }()
	<-w.waiting
	w.let <- struct{}{}
	assert.True(t, of[tool.Record](<-answers, 200).Result.Success, "the control")
}

func TestTimeout(t *testing.T) {
	w := newWorld(t, rest.Options{})
	record := of[tool.Record](w.request("POST", "/v1/calls", "ada", `{"name":"wait","timeout_seconds":0.05}`), 200)
	assert.Equal(t, tool.Deadline, record.Result.Kind)
	<-w.stopped
	// A time too short for our clocks is a time nevertheless.
	record = of[tool.Record](w.request("POST", "/v1/calls", "ada", `{"name":"calculator","arguments":{"expression":"1"},"timeout_seconds":1e-11}`), 200)
	assert.Equal(t, tool.Deadline, record.Result.Kind)
}

// TestBatch: calls as a list, and the response of a provider as it is, whole or as the transcript of a stream. The
// results are in the form that the next request has.
func TestBatch(t *testing.T) {
	w := newWorld(t, rest.Options{})
	report := of[run](w.request("POST", "/v1/batches", "ada", `{"calls":[
		{"id":"1","name":"calculator","arguments":{"expression":"6*7"}},{"id":"2","name":"nobody"},{"id":"3","name":"file_exists","arguments":{"path":"/project/notes.txt"}}]}`), 200)
	assert.Equal(t, "completed", report.Status)
	require.Len(t, report.Records, 3)
	assert.Equal(t, []bool{true, false, true}, []bool{report.Records[0].Result.Success, report.Records[1].Result.Success, report.Records[2].Result.Success})
	assert.Equal(t, 3, report.Totals.Calls)
	assert.Equal(t, "null", string(report.Results))
	assert.Nil(t, report.ExpiresAt, "nothing of it is kept")

	message := `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"calculator","input":{"expression":"6*7"}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	for _, body := range []string{`{"response":` + message + `}`, `{"dialect":"anthropic","response":` + message + `}`} {
		report = of[run](w.request("POST", "/v1/batches", "ada", body), 200)
		assert.JSONEq(t, `[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"42"}]}]`, string(report.Results))
	}
	transcript := "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"calculator\",\"arguments\":\"{\\\"expression\\\":\\\"6*7\\\"}\"}}]}}]}\n\n" +
		"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
	report = of[run](w.request("POST", "/v1/batches", "ada", map[string]any{"response": transcript}), 200)
	require.Len(t, report.Records, 1)
	assert.Contains(t, string(report.Results), `"tool_call_id":"call_1"`)

	none := of[run](w.request("POST", "/v1/batches", "ada", `{"calls":[]}`), 200)
	assert.Equal(t, "completed", none.Status)
	assert.Empty(t, none.Records)
}

// TestStreamedBatch: the events of a batch come as they happen, with ids and heartbeats, and end with the report.
func TestStreamedBatch(t *testing.T) {
	w := newWorld(t, rest.Options{Heartbeat: 5 * time.Millisecond})
	response := w.open(t.Context(), "POST", "/v1/batches", "ada", `{"calls":[{"id":"1","name":"calculator","arguments":{"expression":"6*7"}},{"id":"2","name":"wait"}]}`, "Accept", "text/event-stream")
	defer response.Body.Close()
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	var events []sent
	heartbeats := readEvents(t, response.Body, func(e sent) bool {
		events = append(events, e)
		if e.name == "call_finished" && len(events) == 3 { // the other call goes on
			time.Sleep(20 * time.Millisecond)
			w.let <- struct{}{}
		}
		return true
	})
	assert.Equal(t, []string{"batch_started", "call_started", "call_finished", "call_started", "call_finished", "batch_finished", "report"}, names(events))
	assert.Positive(t, heartbeats)
	for i, e := range events {
		assert.Equal(t, fmt.Sprint(i+1), e.id)
		if e.name == "report" {
			w.doc.fits(t, "Run", []byte(e.data))
			report := noerr.Decode[run](t, []byte(e.data))
			assert.Equal(t, "completed", report.Status)
			assert.Len(t, report.Records, 2)
			continue
		}
		w.doc.fits(t, "Event", []byte(e.data))
		assert.Contains(t, e.data, `"type":"`+e.name+`"`)
	}
	// A refusal before a call has run is an ordinary problem.
	w.request("POST", "/v1/batches", "ada", `{"calls":[{"name":"echo"}],"tools":[{"type":"function","name":"a b"}]}`, "Accept", "text/event-stream").refused(422)
}

// TestSession: results that were cut are read on in their session, by the token that has it alone.
func TestSession(t *testing.T) {
	w := newWorld(t, rest.Options{})
	long := strings.Repeat("0123456789", 10_000)
	record := of[tool.Record](w.request("POST", "/v1/calls", "ada", `{"name":"echo","session":"s1","arguments":{"a":"`+long+`"}}`), 200)
	require.Len(t, record.Cuts, 1)
	path := "/v1/sessions/s1/outputs/" + record.Cuts[0].Reference
	page := of[tool.Page](w.request("GET", path+"?from=50000&most=10", "ada", nil), 200)
	assert.Len(t, page.Text, 10)
	assert.EqualValues(t, record.Cuts[0].Bytes, page.Total)
	for _, other := range []string{"bob", "mallory"} {
		w.request("DELETE", "/v1/sessions/s1", other, nil).refused(404)
		w.request("GET", path, other, nil).refused(404) // it looks in a session of its own
	}
	w.request("GET", path+"?from=x", "ada", nil).refused(400)
	w.request("GET", path+"?to=1", "ada", nil).refused(400)
	w.request("GET", path+"?from=1&from=2", "ada", nil).refused(400)
	assert.Equal(t, http.StatusNoContent, w.request("DELETE", "/v1/sessions/s1", "ada", nil).status)
	w.request("DELETE", "/v1/sessions/s1", "ada", nil).refused(404)
	w.request("GET", path, "ada", nil).refused(404)
}

// TestAttackSessionsThatAreAskedFor: asking for outputs makes no sessions, so that it cannot end those of the tenant's
// other tokens. The control are calls, which do make sessions, and end the token's own.
func TestAttackSessionsThatAreAskedFor(t *testing.T) {
	w := newWorld(t, rest.Options{})
	long := strings.Repeat("0123456789", 10_000)
	read := func(as string) func() int {
		record := of[tool.Record](w.request("POST", "/v1/calls", as, `{"name":"echo","session":"s1","arguments":{"a":"`+long+`"}}`), 200)
		path := "/v1/sessions/s1/outputs/" + record.Cuts[0].Reference
		return func() int { return w.request("GET", path, as, nil).status }
	}
	ada, bob := read("ada"), read("bob")
	for i := range 1001 {
		require.Equal(t, http.StatusNotFound, w.request("GET", fmt.Sprintf("/v1/sessions/z%d/outputs/none", i), "bob", nil).status)
	}
	assert.Equal(t, http.StatusOK, ada())
	assert.Equal(t, http.StatusOK, bob())
	for i := range 1001 {
		of[tool.Record](w.request("POST", "/v1/calls", "bob", fmt.Sprintf(`{"name":"echo","session":"z%d"}`, i)), 200)
	}
	assert.Equal(t, http.StatusOK, ada())
	assert.Equal(t, http.StatusNotFound, bob(), "the control")
}

// TestEndOfSessionEndsItsCalls: the calls of a session end with it.
func TestEndOfSessionEndsItsCalls(t *testing.T) {
	w := newWorld(t, rest.Options{})
	answers := make(chan answered, 1)
	go func() { answers <- w.request("POST", "/v1/calls", "ada", `{"name":"wait","session":"s1"}`) }()
	<-w.waiting
	assert.Equal(t, http.StatusNoContent, w.request("DELETE", "/v1/sessions/s1", "ada", nil).status)
	assert.Equal(t, tool.Cancelled, of[tool.Record](<-answers, 200).Result.Kind)
	<-w.stopped
}

// TestHistory: records are found by their tenant alone, with the tool's own calls and the whole of each result that was
// cut.
func TestHistory(t *testing.T) {
	w := newWorld(t, rest.Options{})
	record := of[tool.Record](w.request("POST", "/v1/calls", "ada", `{"name":"file_read","arguments":{"path":"/etc/passwd"}}`), 200)
	of[tool.Record](w.request("POST", "/v1/calls", "mallory", `{"name":"echo"}`), 200)
	long := of[tool.Record](w.request("POST", "/v1/calls", "bob", `{"name":"echo","arguments":{"a":"`+strings.Repeat("x", 100_000)+`"}}`), 200)

	type kept struct {
		Calls []struct{ Record tool.Record }
	}
	found := of[kept](w.request("GET", "/v1/calls", "reader", nil), 200).Calls
	require.Len(t, found, 2)
	assert.Equal(t, []string{long.CallID, record.CallID}, []string{found[0].Record.CallID, found[1].Record.CallID})
	assert.Len(t, of[kept](w.request("GET", "/v1/calls?limit=1", "reader", nil), 200).Calls, 1)
	assert.Len(t, of[kept](w.request("GET", "/v1/calls", "mallory", nil), 200).Calls, 1)
	assert.NotEmpty(t, of[kept](w.request("GET", "/v1/calls?limit=", "reader", nil), 200).Calls, "empty is the default")
	w.request("GET", "/v1/calls?limit=101", "reader", nil).refused(400)

	type explained struct {
		Record tool.Record
		Whole  *tool.Result
	}
	denied := of[explained](w.request("GET", "/v1/calls/"+record.CallID, "reader", nil), 200)
	require.Len(t, denied.Record.Denials, 1)
	assert.JSONEq(t, `{"tools":["file_read"],"files":[{"path":"/etc","host":null,"access":"read"}]}`, string(denied.Record.Denials[0].Allow.Grant))
	assert.Nil(t, denied.Whole)
	assert.Len(t, of[explained](w.request("GET", "/v1/calls/"+long.CallID, "reader", nil), 200).Whole.Output, 100_000+8)
	for _, id := range []string{record.CallID[:8], record.CallID + "0", "none", "..%2f..", escaped(record.CallID[:35] + "Z")} {
		w.request("GET", "/v1/calls/"+id, "reader", nil).refused(404)
	}
	w.request("GET", "/v1/calls/"+record.CallID, "mallory", nil).refused(404)
}

// A client announces a long body and does not send it. Memory is taken for the bytes that have arrived.
func TestAttackAnnouncedBodies(t *testing.T) {
	w := newWorld(t, rest.Options{})
	const clients = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range clients {
		c := noerr.Get(net.Dial("tcp", strings.TrimPrefix(w.url, "http://")))(t)
		defer c.Close()
		noerr.Get(fmt.Fprintf(c, "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ada\r\nCaller: ada\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", 16<<20))(t)
	}
	time.Sleep(300 * time.Millisecond)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(clients<<20))
}
