package extism

import (
	"context"
	"fmt"
	"io"

	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/inside"
	"github.com/caisson-run/caisson/tool"
)

// Session holds the services that one call's plug-in can request. Each call needs its own, passed to the kernel's host
// functions with [With]. The zero value has no input, and accepts no output.
//
// A Session serves one instance, which is single-threaded. It is not safe for concurrent use.
type Session struct {
	Input []byte
	// OnInput, if not nil, is called once, just before the plug-in gets its input.
	OnInput func()
	Config  map[string]string // not changed
	Network Requester         // nil if the plug-in has none
	MaxBody int64             // bytes of a request's body
	Work    *abi.Work         // nil bounds nothing
	Log     io.Writer         // receives the plug-in's log, a line for each message; nil discards it
	Output  io.Writer         // receives the output that the plug-in has set when it returns
	// MaxVariables is the maximum size of the variables in bytes, with their names and 40 bytes for each.
	MaxVariables int
	// MaxError is the maximum number of bytes that are kept of the plug-in's error.
	MaxError int

	// Starting is set for a plug-in that is started without a call. Functions that depend on a call
	// then end it with a [*StartError].
	Starting bool

	// Error is the error that the plug-in has set when it returns; empty if there is none.
	Error []byte

	variables map[string][]byte
	taken     int    // bytes of the variables
	held      []byte // the bytes that take copies next
	status    int    // of the last response
	headers   [][2]string
	call      call // the current one; there is one at a time
	inside    inside.Context[Session]
}

// Requester sends the call's requests, as an [abi.Requester] does.
type Requester interface {
	Check(ctx context.Context, request network.Request, body int) error
	Do(ctx context.Context, request network.Request) (network.Response, error)
}

// With returns a context in which a plug-in's calls use the session.
func With(ctx context.Context, s *Session) context.Context {
	return s.inside.Hold(ctx, s)
}

// StartError ends a plug-in that is started without a call and calls a function that needs one.
type StartError struct{ Function string }

func (e *StartError) Error() string { return "it calls " + e.Function + " as it starts" }

// Error ends a plug-in that passed an unusable value to a function, or whose request failed. Its
// text begins with the plug-in's action.
type Error struct {
	Message string
	Fault   bool         // it passed an offset that the kernel cannot use
	NoRoom  bool         // its memory has no room for the host's data
	Denial  *tool.Denial // of a request; nil if it failed otherwise
}

func (e *Error) Error() string { return e.Message }

func errorf(format string, arguments ...any) error {
	return &Error{Message: fmt.Sprintf(format, arguments...)}
}
