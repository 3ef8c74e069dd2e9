package abi

import (
	"context"
	"math"

	"github.com/caisson-run/caisson/hostfuncs"
)

// response is what is left to read of an answer, in pieces: a response's body is not copied
// to stand behind its header.
type response struct{ head, body []byte }

// hold keeps the answer's response for the guest to read, and returns what the function
// returns: the status, and the response's length in the lower half.
func (s *Session) hold(a answer) uint64 {
	s.held = response{a.head, a.body}
	return uint64(a.status)<<32 | uint64(len(a.head)+len(a.body))
}

// next copies the next bytes into the buffer and returns how many. It lets go of what has been
// read whole.
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

// maxPiece is the most that one read copies, so that it returns soon.
const maxPiece = 1 << 20

// outside is what a read returns if its buffer lies outside the memory, -1 to the guest. It
// reads nothing.
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
