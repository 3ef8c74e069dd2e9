package abi

import (
	"context"
	"slices"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/inside"
	"github.com/caisson-run/caisson/tool"
)

// The host modules, as guests name them in their imports.
const (
	IO      = "caisson:io@1"
	Network = "caisson:net@1"
	Secrets = "caisson:secrets@1"
	Tools   = "caisson:tools@1"
	Stream  = "caisson:stream@1"
	Context = "caisson:context@1"
)

// Session holds the services that one call's guest can request. Each call needs its own, passed to
// the guest's host functions with [With]. Functions whose field is nil return the status
// unavailable; the zero value offers nothing.
//
// A Session serves one instance, which is single-threaded. It is not safe for concurrent use.
type Session struct {
	Network Requester
	Secrets Checker
	Tools   Caller
	Stream  Speaker
	// About returns the data that the guest may have about its call. It is called at most once.
	About func() About
	// MaxBody is the maximum size of a request's body. Zero or less means 8 MiB.
	MaxBody manifests.Bytes
	Work    *Work

	held   response
	about  []byte // JSON; nil until the guest asks
	inside inside.Context[Session]
}

// Requester sends the call's requests. Outside tests it is a [network.Session], whose errors it
// returns.
type Requester interface {
	// Check returns the error with which Do and Send would refuse a request with a body of this length, which is not
	// in the request.
	Check(ctx context.Context, request network.Request, body int) error
	// Do sends a request and waits for the response.
	Do(ctx context.Context, request network.Request) (network.Response, error)
	// Send starts a request and returns its id. The request ends when ctx ends.
	Send(ctx context.Context, request network.Request) (id int, err error)
	// Receive waits for the response to the request with this id, which may be any number.
	Receive(ctx context.Context, id int) (network.Response, error)
}

// Checker tells which secrets the call's tool has.
type Checker interface {
	// Check reports whether the tool has the named secret. The name may be any text. A non-nil
	// denial means that the guest may not ask for this name.
	Check(name string) (exists bool, denial *tool.Denial)
}

// Caller calls other tools. Outside tests it is a [calls.Session], whose errors it returns.
type Caller interface {
	// Call calls the named tool and returns what the guest may see of the record. The name may be
	// any text. The arguments are a JSON object.
	Call(ctx context.Context, name, arguments string) (tool.Record, error)
}

// Speaker shows the guest's emissions before its call has ended. Outside tests it is a
// [stream.Session], whose errors it returns.
type Speaker interface {
	// Admit charges a request of this many bytes to the call's limit, before the request is read.
	Admit(bytes int) error
	// Emit shows an emission. It does not retain emission.Data.
	Emit(ctx context.Context, emission tool.Emission) error
}

const defaultBody = 8 << 20

func (s *Session) maxBody() int64 {
	if s.MaxBody <= 0 {
		return defaultBody
	}
	return int64(s.MaxBody)
}

// With returns a context in which the guest's calls of caisson:* functions use the session. In a
// context without a session, such a call ends the guest with a [*StartError].
func With(ctx context.Context, s *Session) context.Context {
	return s.inside.Hold(ctx, s)
}

func sessionOf(ctx context.Context, function string) (*Session, error) {
	session, ok := inside.Of[Session](ctx)
	if !ok {
		return nil, &StartError{Function: function}
	}
	return session, nil
}

// StartError ends a program that is started without a call and calls a caisson:* function before
// it reads its input.
type StartError struct{ Function string } // such as "caisson:net@1.request"

func (e *StartError) Error() string { return "it calls " + e.Function + " before it reads its input" }

// About is the data that a guest may have about its call. The caller must leave out everything that the guest's tool
// has not been granted.
type About struct {
	CallID  string            `json:"call_id"`
	Tool    string            `json:"tool"` // the registered name
	Tenant  string            `json:"tenant,omitempty"`
	User    string            `json:"user,omitempty"`
	Session string            `json:"session,omitempty"`
	Context map[string]string `json:"context"` // by name
	Files   []tool.File       `json:"files"`
	Trace   string            `json:"traceparent,omitempty"` // W3C's
	Request tool.Request      `json:"request,omitzero"`
}

// contextGet returns the session's About. It encodes the response once per call.
func contextGet(c *call) (answer, error) {
	if err := c.request(nil); err != nil {
		return answer{}, err
	}
	if c.session.About == nil {
		return answer{}, unavailable("the tool has no context")
	}
	if c.session.about == nil {
		about := c.session.About()
		if about.Context == nil {
			about.Context = map[string]string{}
		}
		about.Files = list(about.Files)
		c.session.about = encode(about)
	}
	return answer{status: statusOK, head: c.session.about}, nil
}

// response is the unread rest of an answer. Head and body are separate, so that the body need not be copied after the
// head.
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

type call struct {
	ctx     context.Context
	session *Session
	memory  hostfuncs.Memory
	stack   []uint64
}

func (c *call) u32(i int) uint32 { return uint32(c.stack[i]) }

// maxRequest is the maximum length of a request in bytes, without its body. Emissions have their
// own limit. It is enough for the longest URL and the most headers with every character escaped.
// Reading such a request, or checking and repairing it as a tool's arguments, takes a fraction of
// the time by which a call may outlast its deadline.
const maxRequest = 256 << 10

// request reads the request, whose pointer and length are parameters 0 and 1.
func (c *call) request(members decode.Members, required ...string) error {
	bytes, err := c.view(0, "request", "request_bytes", maxRequest)
	if err != nil {
		return err
	}
	return decodeRequest(string(bytes), members, required...)
}

// view returns the bytes whose pointer and length are parameters i and i+1. They alias the guest's
// memory.
func (c *call) view(i int, what, limitName string, limit int64) ([]byte, error) {
	bytes, ok := c.memory.View(c.u32(i), c.u32(i+1))
	switch {
	case !ok:
		return nil, invalid("the " + what + " lies outside the memory")
	case int64(len(bytes)) > limit:
		return nil, limited(limitName, limit)
	}
	return bytes, nil
}

// plainMemory is a linear memory that is the bytes themselves.
type plainMemory []byte

// View implements [hostfuncs.Memory].
func (m plainMemory) View(offset, length uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(length)
	if end > uint64(len(m)) {
		return nil, false
	}
	return slices.Clip(m[offset:end]), true
}
