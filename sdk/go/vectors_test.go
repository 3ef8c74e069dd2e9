package caisson

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	Type, Text  string
	Data        json.RawMessage
	Fraction    *float64
	MIMEType    string `json:"mime_type"`
	Partial     bool
}

// emit makes an emission by the function for its type.
func (r anyRequest) emit(t *testing.T, f hostFunction) error {
	switch r.Type {
	case "text":
		return emitText(f, r.Text)
	case "json":
		return emitJSON(f, r.Data)
	case "progress":
		if r.Fraction == nil {
			return emitProgress(f, -1, r.Text)
		}
		return emitProgress(f, *r.Fraction, r.Text)
	case "image":
		return emitImage(f, r.MIMEType, parsed[[]byte](t, string(r.Data)), r.Partial)
	case "link":
		return emitLink(f, parsed[string](t, string(r.Data)), r.Text)
	}
	require.Fail(t, "no function of this SDK emits it", r.Type)
	return nil
}

func (r anyRequest) request(body []byte) Request {
	return Request{Method: r.Method, URL: r.URL, Headers: r.Headers, Body: body, Timeout: time.Duration(r.TimeoutMS) * time.Millisecond}
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			h := &host{status: v.Status, response: v.Response}
			ask, f := parsed[anyRequest](t, v.Request), h.function(v.Function)
			var got any
			var err error
			switch v.Function {
			case "caisson:net@1.request":
				got, err = do(f, ask.request(v.Body))
			case "caisson:net@1.send":
				got, err = start(f, ask.request(v.Body))
			case "caisson:net@1.receive":
				results := make([]Result, 1)
				flight{id: wireID{int64(ask.ID)}}.land(f, results)
				got, err = results[0].Response, results[0].Err
			case "caisson:secrets@1.exists":
				got, err = secretExists(f, ask.Name)
			case "caisson:tools@1.call":
				got, err = callTool(f, ask.Name, ask.Arguments)
			case "caisson:stream@1.emit":
				err = ask.emit(t, f)
			case "caisson:context@1.get":
				got, err = callContext(f)
			default:
				require.Fail(t, "no function of this SDK", v.Function)
			}
			require.Len(t, h.requests, 1)
			assert.JSONEq(t, v.Request, h.requests[0])
			assert.Equal(t, string(v.Body), h.bodies[0])
			if v.Status == statusOK {
				require.NoError(t, err)
				checkAnswer(t, v, got)
				return
			}
			checkFailure(t, v, err)
		})
	}
}

func checkAnswer(t *testing.T, v vector, got any) {
	t.Helper()
	switch got := got.(type) {
	case *Response:
		want := parsed[Response](t, v.Header)
		want.Body = v.ResponseBody
		assert.Equal(t, want.Body, got.Body)
		assert.Equal(t, &want, got)
	case wireID:
		assert.Equal(t, int64(parsed[anyRequest](t, v.Header).ID), got.ID)
	case *ToolResult:
		record := parsed[struct {
			Result  string
			CallID  string `json:"call_id"`
			Denials []Denial
		}](t, v.Header)
		want := parsed[ToolResult](t, record.Result)
		for i, content := range parsed[struct {
			Content []struct {
				MIMEType string `json:"mime_type"`
			}
		}](t, record.Result).Content {
			want.Content[i].MIMEType = content.MIMEType
		}
		want.CallID, want.Denials = record.CallID, record.Denials
		assert.Equal(t, &want, got)
	case *CallContext:
		want := parsed[struct {
			CallID                      string `json:"call_id"`
			Tool, Tenant, User, Session string
			Context                     map[string]string
			Files                       []struct {
				Name, Path string
				MIMEType   string `json:"mime_type"`
				Bytes      int64
			}
			TraceParent string
			Request     CallerRequest
		}](t, v.Header)
		files := []File{}
		for _, f := range want.Files {
			files = append(files, File(f))
		}
		assert.Equal(t, &CallContext{want.CallID, want.Tool, want.Tenant, want.User, want.Session, want.Context, files, want.TraceParent, want.Request}, got)
	case nil:
		assert.Empty(t, v.Header)
	case bool:
		assert.Equal(t, parsed[struct{ Exists bool }](t, v.Header).Exists, got)
	}
}

func checkFailure(t *testing.T, v vector, err error) {
	t.Helper()
	var failure *Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, v.Status)
	want := Error{Op: v.Function, Status: v.Status}
	switch v.Status {
	case Denied:
		denial := parsed[Denial](t, v.Header)
		want.Denial = &denial
	case Limit:
		reached := parsed[struct {
			Limit   string
			Value   int64
			Message string
		}](t, v.Header)
		want.LimitName, want.LimitValue, want.Message = reached.Limit, reached.Value, reached.Message
	default:
		want.Message = parsed[struct{ Message string }](t, v.Header).Message
	}
	assert.Equal(t, want, *failure)
	assert.NotEqual(t, v.Status.Error(), err.Error(), "the error says more than its status")
}

// vector is one call of sdk/testdata, whose README explains it.
type vector struct {
	Name         string
	Function     string
	Request      string
	Body         []byte
	Status       Status
	Response     []byte
	Header       string
	ResponseBody []byte `json:"response_body"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("../testdata/vectors.json")
	require.NoError(t, err)
	var vectors []vector
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.Greater(t, len(vectors), 20)
	return vectors
}

// host is a host that answers every call alike, and hands out its response in small pieces.
type host struct {
	status   Status
	response []byte
	length   int // that it claims the response to have, if it is not 0
	left     []byte
	requests []string
	bodies   []string
}

func (h *host) function(name string) hostFunction { return hostFunction{name, h.call, h.read} }

func (h *host) call(request, body []byte) (uint64, error) {
	h.requests, h.bodies = append(h.requests, string(request)), append(h.bodies, string(body))
	h.left = h.response
	length := len(h.response)
	if h.length != 0 {
		length = h.length
	}
	return uint64(h.status)<<32 | uint64(length), nil
}

func (h *host) read(buffer []byte) int {
	n := copy(buffer[:min(len(buffer), 7)], h.left)
	h.left = h.left[n:]
	return n
}
