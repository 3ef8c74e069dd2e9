package abi

import (
	"context"
	"errors"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// Begin is called before the body of a call of [Invoke] arrives, if it has one. It returns the request with room for
// the body after it. If the call is refused whatever the body holds, it returns the response instead.
func Begin(
	ctx context.Context, name string, request []byte, body int64,
) (bytes []byte, refused *wasi.Response, err error) {
	f, response := find(name, body)
	if f == nil {
		return nil, &response, nil
	}
	session, err := sessionOf(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	c := &call{ctx, session, plainMemory(request), []uint64{0, uint64(len(request))}}
	head, err := c.httpHead() // no other function has a body
	if err == nil {
		err = c.checkBody(head, int(body))
	}
	if refusal, is := errors.AsType[problem](err); is {
		response = refusal.answer.response()
		return nil, &response, nil
	}
	if err == nil {
		bytes, err = session.Work.room(ctx, len(request)+int(body))
	}
	return append(bytes, request...), nil, err
}

// Invoke calls a function by its name, such as "caisson:net@1.request", for a guest whose module cannot import it.
// The bytes are the request followed by the body, and are the function's from then on. The context must hold a
// session. An error ends the guest.
func Invoke(ctx context.Context, name string, bytes []byte, request int) (wasi.Response, error) {
	found, refused := find(name, int64(len(bytes)-request))
	if found == nil {
		return refused, nil
	}
	session, err := sessionOf(ctx, name)
	if err != nil {
		return wasi.Response{}, err
	}
	stack := [4]uint64{0, uint64(request), uint64(request), uint64(len(bytes) - request)}
	if err := found.Call(ctx, plainMemory(bytes), stack[:max(len(found.Params), 1)]); err != nil {
		return wasi.Response{}, err
	}
	held := session.held
	session.held = response{}
	return answer{status(stack[0] >> 32), held.head, held.body}.response(), nil
}

// find returns the named function if it accepts a body of this length, or the response that refuses the request.
func find(name string, body int64) (*hostfuncs.Function, wasi.Response) {
	module, function, _ := strings.Cut(name, ".")
	for _, f := range Functions() {
		switch {
		case f.Module != module || f.Name != function || module == IO:
		case len(f.Params) == 2 && body > 0:
			return nil, invalidResponse(name + " takes no body")
		default:
			return &f, wasi.Response{}
		}
	}
	return nil, invalidResponse("there is no function " + truncate(name) + " in this version")
}

func invalidResponse(text string) wasi.Response {
	return invalid(text).(problem).answer.response()
}

func (a answer) response() wasi.Response {
	return wasi.Response{Status: uint32(a.status), Head: a.head, Body: a.body}
}

// truncate shortens a name that a guest chose, for a message.
func truncate(name string) string {
	const limit = 64
	if len(name) <= limit {
		return name
	}
	return strings.ToValidUTF8(name[:limit], "") + "…"
}

// MaxInvocation returns how many bytes a request may have, and how many its body.
func (s *Session) MaxInvocation() (request, body int64) { return maxEmission, s.maxBody() }
