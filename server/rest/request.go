package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/server/sessions"
	"github.com/caisson-run/caisson/tool"
)

// batchRequest is a batch as a body asks for it.
type batchRequest struct {
	batch   executor.Batch // without its session
	session string
	dialect dialects.Dialect // in which the results are wanted; may be nil
}

// Bounds of what a body may ask for.
const (
	maxCalls   = 1024
	maxTimeout = 24 * 60 * 60 // seconds
)

// callRequest reads the body of a single call, for the given tools.
func (x *exchange) callRequest(tools *registry.Registry) (batchRequest, error) {
	var b batchRequest
	var c writtenCall
	var timeout float64
	fields := c.fields()
	fields["session"], fields["requests"] = sessionID(&b.session), requests(tools, &b.batch.Requests)
	fields["timeout_seconds"] = decode.Number(&timeout, maxTimeout)
	if err := x.decode(fields); err != nil {
		return b, err
	}
	if problem := c.problem(); problem != "" {
		return b, refuse(http.StatusBadRequest, "the call %s", problem)
	}
	b.batch.Calls, b.batch.Timeout, b.batch.Trace = []tool.Call{c.Call}, seconds(timeout), x.trace()
	return b, nil
}

// sessionID takes the id of a session. An empty one is more likely an empty variable than no session.
func sessionID(to *string) decode.Reader {
	return func(v jsontext.Value) error {
		if err := decode.Text(to)(v); err != nil {
			return err
		}
		if *to == "" {
			return decode.Wrong(v, "is empty; leave it out for a session of this request's own")
		}
		return nil
	}
}

// writtenCall is a call in a body: with its name and arguments side by side, or as chat completions nest them,
// {"type":"function","function":{"name":…,"arguments":…}} or {"type":"custom","custom":{"name":…,"input":…}}.
type writtenCall struct {
	tool.Call
	beside string // the first member of the name and the arguments that stands beside the others
	nested string // the member in which they are nested
}

// fields are the members of a call.
func (c *writtenCall) fields() decode.Members {
	beside := func(name string, take decode.Reader) decode.Reader {
		return func(v jsontext.Value) error {
			if c.beside == "" {
				c.beside = name
			}
			return take(v)
		}
	}
	nested := func(kind string, take decode.Reader, input string) decode.Reader {
		return func(v jsontext.Value) error {
			if c.nested != "" {
				return decode.Wrong(v, "cannot stand beside %s", c.nested)
			}
			c.nested = kind
			return decode.Object(v, decode.Members{"name": decode.Text(&c.Function.Name), input: take})
		}
	}
	return decode.Members{
		"id": decode.Text(&c.ID), "name": beside("name", decode.Text(&c.Function.Name)),
		"arguments": beside("arguments", readArguments(&c.Function.Arguments)),
		"function":  nested(tool.FunctionCall, readArguments(&c.Function.Arguments), "arguments"),
		"custom":    nested(tool.CustomCall, decode.Text(&c.Function.Arguments), "input"),
		"type": func(v jsontext.Value) error {
			if kinds := []string{tool.FunctionCall, tool.CustomCall, tool.LocalShellCall}; !slices.Contains(kinds, v.String()) {
				return decode.Wrong(v, "must be function, custom or local_shell")
			}
			return decode.Text(&c.Type)(v)
		},
	}
}

// problem returns why the members do not fit together, or "". Without a type, the call is of the type in which
// it is nested.
func (c *writtenCall) problem() string {
	switch {
	case c.nested != "" && c.beside != "":
		return fmt.Sprintf("has %s beside %s, which has its name and its arguments", c.beside, c.nested)
	case c.nested != "" && c.Type != "" && c.Type != c.nested:
		return fmt.Sprintf("is of the type %s and has a member %s; write {\"type\":%q,%[2]q:{…}}", c.Type, c.nested, c.nested)
	case c.Function.Name == "":
		return "has no name: the name of a tool"
	case c.nested != "":
		c.Type = c.nested
	}
	return ""
}

// readArguments takes an object, which is passed on as it is written, or the text that a model wrote. Null, which some
// providers write for none, is none.
func readArguments(to *string) decode.Reader {
	return func(v jsontext.Value) error {
		switch v.Kind() {
		case jsontext.Object:
			*to = strings.Clone(v.Text())
		case jsontext.String:
			return decode.Text(to)(v)
		case jsontext.Null:
		default:
			return decode.Wrong(v, "must be an object, or the text that a model wrote")
		}
		return nil
	}
}

// requests takes what the request says to tools, by name. Unknown names are ignored, as package executor does: a map
// for each would take many times the body.
func requests(tools *registry.Registry, to *map[string]tool.Request) decode.Reader {
	*to = map[string]tool.Request{}
	return decode.Map(func(name string, v jsontext.Value) error {
		var said tool.Request
		err := decode.Object(v, decode.Members{
			"definition": decode.RawObject(&said.Definition),
			"values": decode.Map(func(key string, v jsontext.Value) error {
				var value string
				err := decode.Text(&value)(v)
				if said.Values == nil {
					said.Values = map[string]string{}
				}
				said.Values[key] = value
				return err
			}),
		})
		if _, known := tools.Get(name); known {
			(*to)[name] = said
		}
		return err
	})
}

// batchRequest reads the body of a batch or a run.
func (x *exchange) batchRequest() (batchRequest, error) {
	return x.batchRequestOf(x.api.host.Registry())
}

// batchRequestOf is batchRequest, for the tools that there are.
func (x *exchange) batchRequestOf(tools *registry.Registry) (batchRequest, error) {
	var b batchRequest
	var calls []tool.Call
	var response json.RawMessage
	var dialect string
	var timeout float64
	var brings offered
	given := false
	err := x.decode(decode.Members{
		"calls": func(v jsontext.Value) error {
			given = true
			return decode.Elements(maxCalls, func(v jsontext.Value) error {
				var c writtenCall
				if err := decode.Object(v, c.fields()); err != nil {
					return err
				}
				if problem := c.problem(); problem != "" {
					return decode.Wrong(v, "%s", problem)
				}
				calls = append(calls, c.Call)
				return nil
			})(v)
		},
		"response": func(v jsontext.Value) error {
			if v.Kind() == jsontext.String { // a transcript
				response = json.RawMessage(v.String())
				return nil
			}
			return decode.Raw(&response)(v)
		},
		"dialect": decode.Text(&dialect), "session": sessionID(&b.session),
		"timeout_seconds": decode.Number(&timeout, maxTimeout), "requests": requests(tools, &b.batch.Requests),
		"tools": decode.Elements(maxCalls, brings.take(tools)),
	})
	if err != nil {
		return b, err
	}
	brings.addTo(&b.batch.Requests)
	b.batch.Client = brings.client
	if given == (response != nil) {
		return b, refuse(http.StatusBadRequest, "give either calls or a response")
	}
	if dialect != "" {
		if b.dialect, err = dialectNamed(dialect, http.StatusBadRequest); err != nil {
			return b, err
		}
	}
	if response != nil {
		if calls, err = b.callsOf(response); err != nil {
			return b, err
		}
	}
	b.batch.Calls, b.batch.Timeout, b.batch.Trace = calls, seconds(timeout), x.trace()
	return b, nil
}

// callsOf returns the calls of a provider's response, and sets its dialect if that was not given.
func (b *batchRequest) callsOf(response []byte) ([]tool.Call, error) {
	var read tool.ChatResponse
	var err error
	if b.dialect == nil {
		read, b.dialect, err = known.Read(response)
	} else {
		read, err = known.ReadIn(b.dialect, response)
	}
	var wrong *dialects.Error
	switch {
	case errors.As(err, &wrong):
		return nil, refuse(http.StatusUnprocessableEntity, "response: %s", wrong)
	case err != nil:
		return nil, err
	case len(read.ToolCalls) > maxCalls:
		return nil, refuse(http.StatusUnprocessableEntity, "the response has %d calls, over the limit of %d",
			len(read.ToolCalls), maxCalls)
	}
	return read.ToolCalls, nil
}

// seconds returns a time, which is 0 only if n is: no time at all is no limit.
func seconds(n float64) time.Duration { return time.Duration(math.Ceil(n * float64(time.Second))) }

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// trace returns the request's traceparent, if it is one.
func (x *exchange) trace() string {
	if given := x.request.Header.Get("Traceparent"); given != "" && traceparent.MatchString(given) {
		return given
	}
	return ""
}

// session returns a session of the caller's.
func (x *exchange) session(id string) (*executor.Session, func(), error) {
	session, done, err := x.api.options.Sessions.Get(x.request.Context(), x.caller, id)
	return session, done, sessionRefusal(err)
}

// sessionRefusal returns the refusal that an error of package sessions stands for.
func sessionRefusal(err error) error {
	switch {
	case errors.Is(err, sessions.ErrInvalidID):
		return refuse(http.StatusBadRequest, "session must be 1 to 128 visible ASCII characters")
	case errors.Is(err, sessions.ErrTooMany):
		return refuse(http.StatusTooManyRequests, "the tenant has too many sessions in use; end one, or wait")
	case errors.Is(err, sessions.ErrClosed):
		return errStopping
	}
	return err
}

// sizeOfRequests returns about how many bytes requests to tools hold, each value in a map.
func sizeOfRequests(requests map[string]tool.Request) int {
	const each, value = 512, 80
	size := 0
	for _, request := range requests {
		size += each + len(request.Definition)
		for key, text := range request.Values {
			size += value + len(key) + len(text)
		}
	}
	return size
}
