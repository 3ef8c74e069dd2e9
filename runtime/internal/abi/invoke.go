package abi

import (
	"context"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
)

// Response is what a function answers to a caller that has no linear memory to read it into.
type Response struct {
	Status uint32 // of ABI.md, "Calling"
	Head   []byte // followed by
	Body   []byte
}

// Invoke calls a function by its name, such as "caisson:net@1.request", for a guest whose module cannot import it.
// The bytes are the request followed by the body. The context must hold a session. An error ends the guest.
func Invoke(ctx context.Context, name string, bytes []byte, request int) (Response, error) {
	module, function, _ := strings.Cut(name, ".")
	var found *hostfuncs.Function
	for _, f := range Functions() {
		if f.Module == module && f.Name == function && module != IO {
			found = &f
		}
	}
	if found == nil {
		return invalidResponse("there is no function " + clip(name) + " in this version"), nil
	}
	if len(found.Params) == 2 && request < len(bytes) {
		return invalidResponse(name + " takes no body"), nil
	}
	session, err := sessionOf(ctx, name)
	if err != nil {
		return Response{}, err
	}
	stack := [4]uint64{0, uint64(request), uint64(request), uint64(len(bytes) - request)}
	if err := found.Call(ctx, plainMemory(bytes), stack[:max(len(found.Params), 1)]); err != nil {
		return Response{}, err
	}
	held := session.held
	session.held = response{}
	return Response{uint32(stack[0] >> 32), held.head, held.body}, nil
}

func invalidResponse(text string) Response {
	return Response{uint32(statusInvalid), invalid(text).(problem).answer.head, nil}
}

// clip shortens a name that a guest chose, for a message.
func clip(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// MaxInvocation returns how many bytes a request with its body may have.
func (s *Session) MaxInvocation() int64 { return maxEmission + s.maxBody() }

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
