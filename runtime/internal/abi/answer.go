package abi

import (
	"context"
	"fmt"
	"math"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/tool"
)

// status is the result code of a function.
type status uint32

// The statuses, each with the content of its response. 5, not_found, is reserved for functions of
// later modules.
const (
	statusOK          status = 0 // defined by the function
	statusDenied      status = 1 // the receipt
	statusInvalid     status = 2 // {"message"}
	statusLimit       status = 3 // {"limit","value","message"?}
	statusDeadline    status = 4 // {"message"}
	statusIO          status = 6 // {"message"}
	statusUnavailable status = 7 // {"message"}
)

// answer is what a function returns to the guest. The response is head followed by body.
type answer struct {
	status     status
	head, body []byte
}

// problem is an error that holds an answer with a status other than OK.
type problem struct{ answer answer }

func (p problem) Error() string { return fmt.Sprintf("status %d: %s", p.answer.status, p.answer.head) }

func denied(denial tool.Denial) error { return problem{answerJSON(statusDenied, denial)} }

func limited(limit string, value int64) error { return limitedTo(limit, value, "") }

// limitedTo is like limited, with a message.
func limitedTo(limit string, value int64, text string) error {
	return problem{answerJSON(statusLimit, struct {
		Limit   string `json:"limit"`
		Value   int64  `json:"value"`
		Message string `json:"message,omitempty"`
	}{limit, value, text})}
}

func invalid(text string) error     { return said(statusInvalid, text) }
func unavailable(text string) error { return said(statusUnavailable, text) }

// said returns a problem whose response is a message.
func said(s status, text string) error {
	return problem{answerJSON(s, struct {
		Message string `json:"message"`
	}{text})}
}

// answerJSON returns an answer with the JSON of a value that always encodes.
func answerJSON(s status, value any) answer { return answer{status: s, head: encode(value)} }

// encode is like [tryEncode], for values that always encode.
func encode(value any) []byte {
	written, err := tryEncode(value)
	if err != nil {
		panic(err) // texts, numbers and lists of them always encode
	}
	return written
}

// About is what a guest may know about its call. The caller must leave out everything that the
// guest's tool has not been granted.
type About struct {
	CallID  string
	Tool    string // the registered name
	Tenant  string
	User    string
	Session string
	Context map[string]string // by name
	Files   []tool.File
	Trace   string // a W3C traceparent
	Request tool.Request
}

// wireAbout is the wire format of [About].
type wireAbout struct {
	CallID  string            `json:"call_id"`
	Tool    string            `json:"tool"`
	Tenant  string            `json:"tenant,omitempty"`
	User    string            `json:"user,omitempty"`
	Session string            `json:"session,omitempty"`
	Context map[string]string `json:"context"`
	Files   []tool.File       `json:"files"`
	Trace   string            `json:"traceparent,omitempty"`
	Request tool.Request      `json:"request,omitzero"`
}

// contextGet returns what the guest may know about its call. It encodes the response once per call.
func contextGet(c *call) (answer, error) {
	if err := c.request(nil); err != nil {
		return answer{}, err
	}
	if c.session.About == nil {
		return answer{}, unavailable("the tool has no context")
	}
	if c.session.about == nil {
		c.session.about = encode(c.session.About().wire())
	}
	return answer{status: statusOK, head: c.session.about}, nil
}

func (a About) wire() wireAbout {
	if a.Context == nil {
		a.Context = map[string]string{}
	}
	return wireAbout{
		CallID: a.CallID, Tool: a.Tool, Tenant: a.Tenant, User: a.User, Session: a.Session,
		Context: a.Context, Files: list(a.Files), Trace: a.Trace, Request: a.Request,
	}
}

// response is the unread rest of an answer. Head and body are separate, so that the body need not
// be copied behind the head.
type response struct{ head, body []byte }

// hold keeps the answer's response for the guest to read. It returns the function's result: status
// in the upper half, response length in the lower half.
func (s *Session) hold(a answer) uint64 {
	s.held = response{a.head, a.body}
	return uint64(a.status)<<32 | uint64(len(a.head)+len(a.body))
}

// next copies the next bytes into the buffer and returns how many. It releases the response once
// all of it has been read.
func (r *response) next(buffer []byte) int {
	n := copy(buffer, r.head)
	r.head = r.head[n:]
	m := copy(buffer[n:], r.body)
	r.body = r.body[m:]
	if len(r.head)+len(r.body) == 0 {
		*r = response{}
	}
	return n + m
}

// maxPiece is the most bytes that one read copies, so that it returns soon.
const maxPiece = 1 << 20

// outside is the result of a read whose buffer lies outside the memory: -1 as an i32. Such a read
// copies nothing.
const outside = math.MaxUint32

func readFunction() hostfuncs.Function {
	const name = "read"
	return hostfuncs.Function{
		Module: IO, Name: name,
		Params: []hostfuncs.ValueType{hostfuncs.I32, hostfuncs.I32}, Results: []hostfuncs.ValueType{hostfuncs.I32},
		Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			session, err := sessionOf(ctx, IO+"."+name)
			if err != nil {
				return err
			}
			buffer, ok := memory.View(uint32(stack[0]), uint32(stack[1]))
			if !ok {
				stack[0] = outside
				return nil
			}
			stack[0] = uint64(session.held.next(buffer[:min(len(buffer), maxPiece)]))
			return nil
		},
	}
}
