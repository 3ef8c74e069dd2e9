package abi

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/tool"
)

// vector is one call of sdk/testdata, whose README explains it.
type vector struct {
	Name         string
	Function     string
	Request      string
	Body         []byte
	Status       status
	Response     []byte
	Header       string
	ResponseBody []byte `json:"response_body"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("../../../sdk/testdata/vectors.json")
	require.NoError(t, err)
	var vectors []vector
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.Greater(t, len(vectors), 20)
	return vectors
}

// parsed returns the value of some JSON, read without the code under test.
func parsed[T any](t *testing.T, text string) (value T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}

type anyRequest struct {
	Method, URL string
	Headers     [][2]string
	TimeoutMS   int `json:"timeout_ms"`
	ID          int
	Name        string
	Arguments   json.RawMessage
}

type anyResponse struct {
	Status    int
	URL       string
	Headers   [][2]string
	Truncated bool
	ID        int
	Exists    bool
	Message   string
}

type limit struct {
	Limit   string
	Value   int64
	Message string
}

// kinds are the network's errors that have a status.
var kinds = map[status]error{
	statusDenied: hostfuncs.ErrDenied, statusInvalid: hostfuncs.ErrInvalid, statusLimit: hostfuncs.ErrLimit,
	statusDeadline: hostfuncs.ErrDeadline, statusIO: hostfuncs.ErrIO, statusUnavailable: hostfuncs.ErrUnavailable,
}

func TestVectors(t *testing.T) {
	seen := map[status]bool{}
	called := map[string]bool{}
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			seen[v.Status], called[v.Function] = true, true
			switch v.Function {
			case toolCall:
				testCallVector(t, v)
				return
			case emit:
				testEmitVector(t, v)
				return
			case get:
				testGetVector(t, v)
				return
			}
			ask, answer := parsed[anyRequest](t, v.Request), parsed[anyResponse](t, v.Header)
			wire := &answering{id: answer.ID, response: network.Response{
				Status: answer.Status, URL: answer.URL, Headers: answer.Headers, Body: v.ResponseBody, Truncated: answer.Truncated,
			}}
			if kind, failed := kinds[v.Status]; failed {
				failure := &hostfuncs.Error{Op: "request", Kind: kind, Message: answer.Message}
				switch v.Status {
				case statusDenied:
					denial := parsed[tool.Denial](t, v.Header)
					failure.Denial = &denial
				case statusLimit:
					reached := parsed[limit](t, v.Header)
					failure.Limit, failure.Value = reached.Limit, reached.Value
				}
				wire.err = failure
			}
			secrets := known{ask.Name: answer.Exists}
			if v.Status == statusDenied {
				secrets[ask.Name] = parsed[tool.Denial](t, v.Header)
			}
			g := newGuest(t, &Session{Network: wire, Secrets: secrets})
			status, response := g.call(v.Function, v.Request, v.Body)
			assert.Equal(t, v.Status, status)
			assert.Equal(t, string(v.Response), response)

			switch v.Function {
			case request, send:
				require.Len(t, wire.requests, 1)
				got := wire.requests[0]
				assert.Equal(t, string(v.Body), string(got.Body))
				got.Body = nil
				assert.Equal(t, network.Request{
					Method: ask.Method, URL: ask.URL, Headers: ask.Headers, Timeout: time.Duration(ask.TimeoutMS) * time.Millisecond,
				}, got)
			case receive:
				assert.Equal(t, []int{ask.ID}, wire.received)
			}
		})
	}
	assert.Len(t, seen, 1+len(kinds))
	for _, f := range Functions() {
		assert.True(t, called[f.Module+"."+f.Name] || f.Name == "read", f.Name)
	}
}

// callKinds are the errors of calls that have a status.
var callKinds = map[status]error{
	statusLimit: hostfuncs.ErrLimit, statusDeadline: hostfuncs.ErrDeadline, statusUnavailable: hostfuncs.ErrUnavailable,
}

// testCallVector makes the call of a vector, whose request and answer have another form.
func testCallVector(t *testing.T, v vector) {
	tools := &caller{}
	switch v.Status {
	case statusOK:
		tools.record = parsed[tool.Record](t, v.Header)
	case statusDenied:
		denial := parsed[tool.Denial](t, v.Header)
		tools.err = &hostfuncs.Error{Op: "call", Kind: hostfuncs.ErrDenied, Denial: &denial}
	default:
		require.Contains(t, callKinds, v.Status)
		reached := parsed[limit](t, v.Header)
		tools.err = &hostfuncs.Error{Op: "call", Kind: callKinds[v.Status], Message: reached.Message, Limit: "tool_calls", Value: reached.Value}
	}
	status, response := newGuest(t, &Session{Tools: tools}).call(v.Function, v.Request, v.Body)
	assert.Equal(t, v.Status, status)
	assert.Equal(t, string(v.Response), response)
	ask := parsed[anyRequest](t, v.Request)
	assert.Equal(t, [][2]string{{ask.Name, string(ask.Arguments)}}, tools.asked)
}

// testEmitVector makes the emission of a vector.
func testEmitVector(t *testing.T, v vector) {
	said := &speaker{}
	switch v.Status {
	case statusInvalid:
		said.err = &hostfuncs.Error{Op: "emit", Kind: hostfuncs.ErrInvalid, Message: parsed[limit](t, v.Header).Message}
	case statusLimit:
		said.err = &hostfuncs.Error{Op: "emit", Kind: hostfuncs.ErrLimit, Limit: "output", Value: parsed[limit](t, v.Header).Value}
	case statusUnavailable:
		said.err = &hostfuncs.Error{Op: "emit", Kind: hostfuncs.ErrUnavailable, Message: parsed[limit](t, v.Header).Message}
	}
	status, response := newGuest(t, &Session{Stream: said}).call(v.Function, v.Request, v.Body)
	assert.Equal(t, v.Status, status)
	assert.Equal(t, string(v.Response), response)
	require.Len(t, said.said, 1)
	written, err := tryEncode(said.said[0])
	require.NoError(t, err)
	assert.JSONEq(t, v.Request, string(written))
	wrong := said.said[0].Check()
	if v.Status != statusInvalid {
		assert.NoError(t, wrong)
		return
	}
	assert.EqualError(t, wrong, parsed[limit](t, v.Header).Message)
}

// testGetVector reads a vector's context of a call.
func testGetVector(t *testing.T, v vector) {
	told := parsed[struct {
		CallID                      string `json:"call_id"`
		Tool, Tenant, User, Session string
		Context                     map[string]string
		Files                       []tool.File
		TraceParent                 string
		Request                     tool.Request
	}](t, v.Header)
	about := About{told.CallID, told.Tool, told.Tenant, told.User, told.Session, told.Context, told.Files, told.TraceParent, told.Request}
	if len(about.Files) == 0 {
		about.Context, about.Files = nil, nil
	}
	status, response := newGuest(t, &Session{About: func() About { return about }}).call(v.Function, v.Request, v.Body)
	assert.Equal(t, v.Status, status)
	assert.Equal(t, string(v.Response), response)
}
