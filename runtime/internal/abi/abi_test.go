package abi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// The types with which the runtime fills a session.
var (
	_ Requester = (*network.Session)(nil)
	_ Checker   = (*secrets.Set)(nil)
	_ Caller    = (*calls.Session)(nil)
	_ Speaker   = (*stream.Session)(nil)
)

func TestFunctions(t *testing.T) {
	i32 := func(n int) []hostfuncs.ValueType { return slices.Repeat([]hostfuncs.ValueType{hostfuncs.I32}, n) }
	want := map[string][2][]hostfuncs.ValueType{
		read:     {i32(2), i32(1)},
		request:  {i32(4), {hostfuncs.I64}},
		send:     {i32(4), {hostfuncs.I64}},
		receive:  {i32(2), {hostfuncs.I64}},
		exists:   {i32(2), {hostfuncs.I64}},
		toolCall: {i32(2), {hostfuncs.I64}},
		emit:     {i32(2), {hostfuncs.I64}},
		get:      {i32(2), {hostfuncs.I64}},
	}
	functions := byName()
	require.Len(t, functions, len(want))
	for name, types := range want {
		assert.Equal(t, types[0], functions[name].Params, name)
		assert.Equal(t, types[1], functions[name].Results, name)
	}
}

// TestNoFunctionRunsBeforeTheCall: a program that starts without a call and calls a function is ended, with the
// function's name.
func TestNoFunctionRunsBeforeTheCall(t *testing.T) {
	for name, f := range byName() {
		err := f.Call(t.Context(), make(flat, 10), make([]uint64, 4))
		var start *StartError
		require.ErrorAs(t, err, &start, name)
		assert.Equal(t, name, start.Function)
		assert.EqualError(t, err, "it calls "+name+" before it reads its input")
	}
}

func TestSessionWithoutAnything(t *testing.T) {
	g := newGuest(t, &Session{})
	for name, text := range valid {
		status, response := g.call(name, text, nil)
		assert.Equal(t, statusUnavailable, status, name)
		assert.Contains(t, response, `{"message":"the tool has no `, name)
	}
}

func TestReadInPieces(t *testing.T) {
	body := strings.Repeat("0123456789", 300)
	g := newGuest(t, &Session{Network: &answering{response: network.Response{Status: 200, Body: []byte(body)}}})
	copy(g.memory[requestAt:], valid[request])
	result := g.mustRaw(request, requestAt, uint64(len(valid[request])), 0, 0)
	const header = `{"status":200,"url":"","headers":[],"truncated":false}`
	require.Equal(t, uint64(4+len(header)+len(body)), result)

	var all []byte
	for _, n := range []int{0, 1, 3, 0, 40, 40, 2000, 7} { // the sixth holds the end of the header and the start of the body
		piece := g.read(n)
		require.Len(t, piece, n)
		all = append(all, piece...)
	}
	all = append(all, g.readAll()...)
	assert.Equal(t, string([]byte{byte(len(header)), 0, 0, 0})+header+body, string(all))
	assert.Empty(t, g.read(10), "the end stays the end")
}

func TestReadOutsideTheMemoryReadsNothing(t *testing.T) {
	g := newGuest(t, &Session{Secrets: known{"SEARCH_KEY": true}})
	copy(g.memory[requestAt:], valid[exists])
	g.mustRaw(exists, requestAt, uint64(len(valid[exists])))
	for _, at := range []uint64{uint64(len(g.memory)) - 3, uint64(len(g.memory)) + 1, 1<<32 - 1} {
		n := g.mustRaw(read, at, 4)
		assert.Equal(t, int32(-1), int32(uint32(n)), at)
	}
	assert.JSONEq(t, `{"exists":true}`, string(g.readAll()))
}

// TestReadMovesABoundedPiece, so that it soon returns.
func TestReadMovesABoundedPiece(t *testing.T) {
	session := &Session{held: response{body: make([]byte, 2*maxPiece)}}
	g := newGuest(t, session)
	g.memory = make(flat, 2*maxPiece)
	n := g.mustRaw(read, 0, 2*maxPiece)
	assert.Equal(t, uint64(maxPiece), n)
}

// TestResponseIsHeldUntilTheNextCall, whatever that call is and however it ends.
func TestResponseIsHeldUntilTheNextCall(t *testing.T) {
	for name := range valid {
		g := newGuest(t, &Session{Secrets: known{"SEARCH_KEY": true}, Stream: &speaker{}})
		copy(g.memory[requestAt:], valid[exists])
		g.mustRaw(exists, requestAt, uint64(len(valid[exists])))
		require.Equal(t, `{"exi`, string(g.read(5)))
		_, response := g.call(name, `[]`, nil)
		assert.Contains(t, response, " a JSON object", name)
	}
}

// TestMemoryIsNotKept: requests are copied, so that a guest may change its memory after a call.
func TestMemoryIsNotKept(t *testing.T) {
	wire := &answering{id: 1}
	g := newGuest(t, &Session{Network: wire})
	status, _ := g.call(send, valid[send], []byte("the body"))
	require.Equal(t, statusOK, status)
	clear(g.memory)
	require.Len(t, wire.requests, 1)
	assert.Equal(t, "the body", string(wire.requests[0].Body))
	assert.Equal(t, "https://api.example.com/", wire.requests[0].URL)
}

func TestPointersOutsideTheMemory(t *testing.T) {
	size := uint64(4 << 20)
	session := &Session{Network: &answering{}, Secrets: known{}, Stream: &speaker{}}
	for name, text := range valid {
		g := newGuest(t, session)
		copy(g.memory[requestAt:], text)
		body := len(g.functions[name].Params) == 4
		for _, span := range [][2]uint64{{size - 1, 2}, {size, 1}, {size + 1, 0}, {1<<32 - 1, 1<<32 - 1}, {0, size + 1}, {1 << 31, 1 << 31}} {
			params := append(span[:], []uint64{0, 0}...)
			if !body {
				params = params[:2]
			}
			checkOutside(t, g, "request", name, params)
			if body {
				checkOutside(t, g, "body", name, []uint64{requestAt, uint64(len(text)), span[0], span[1]})
			}
		}
	}
}

func checkOutside(t *testing.T, g *guest, what, name string, params []uint64) {
	t.Helper()
	result := g.mustRaw(name, params...)
	assert.Equal(t, statusInvalid, status(result>>32), "%s %v", name, params)
	assert.Equal(t, `{"message":"the `+what+` lies outside the memory"}`, string(g.readAll()))
}

// TestUpperHalvesOfParametersAreIgnored: they may hold anything.
func TestUpperHalvesOfParametersAreIgnored(t *testing.T) {
	g := newGuest(t, &Session{Secrets: known{"SEARCH_KEY": true}})
	copy(g.memory[requestAt:], valid[exists])
	const junk = 0xdeadbeef << 32
	result := g.mustRaw(exists, junk|requestAt, junk|uint64(len(valid[exists])))
	assert.Equal(t, uint64(len(`{"exists":true}`)), result)
	n := g.mustRaw(read, junk|bufferAt, junk|uint64(100))
	assert.Equal(t, `{"exists":true}`, string(g.memory[bufferAt:bufferAt+n]))
}

func TestSizes(t *testing.T) {
	wire := &answering{}
	for _, test := range []struct {
		name       string
		session    Session
		request    int // bytes
		body       int
		status     status
		wantAnswer string
	}{
		{"the longest request", Session{}, maxRequest, 0, statusOK, ""},
		{"a longer one", Session{}, maxRequest + 1, 0, statusLimit, `{"limit":"request_bytes","value":262144}`},
		{"the longest body", Session{MaxBody: 100}, 100, 100, statusOK, ""},
		{"a longer one", Session{MaxBody: 100}, 100, 101, statusLimit, `{"limit":"http_bytes","value":100}`},
		{"the longest body by default", Session{}, 100, defaultBody, statusOK, ""},
		{"a longer one", Session{}, 100, defaultBody + 1, statusLimit, fmt.Sprintf(`{"limit":"http_bytes","value":%d}`, defaultBody)},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.session.Network = wire
			g := newGuest(t, &test.session)
			g.memory = make(flat, requestAt+test.request+test.body)
			text := valid[request]
			copy(g.memory[requestAt:], text+strings.Repeat(" ", test.request-len(text)))
			result := g.mustRaw(request, requestAt, uint64(test.request), uint64(requestAt+test.request), uint64(test.body))
			assert.Equal(t, test.status, status(result>>32))
			g.memory = make(flat, 4<<20)
			if response := string(g.readAll()); test.wantAnswer != "" {
				assert.Equal(t, test.wantAnswer, response)
			}
		})
	}
}

// TestFailuresThatTheGuestSees: those of a denial, a limit and so on are in the vectors.
func TestFailuresThatTheGuestSees(t *testing.T) {
	const secret = "10.1.2.3"
	cause := errors.New("dial tcp " + secret + ":443: connection refused")
	for name, err := range map[string]error{
		`{"message":"the server does not answer"}`: &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrIO, Message: "the server does not answer"},
		`{"message":"network error"}`:              &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrIO}, // no message
		`{"message":"wrapped"}`:                    fmt.Errorf("%w: %w", &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrIO, Message: "wrapped"}, cause),
	} {
		for _, function := range []string{request, send, receive} {
			g := newGuest(t, &Session{Network: &answering{err: err}})
			status, response := g.call(function, valid[function], nil)
			assert.Equal(t, statusIO, status)
			assert.Equal(t, name, response)
			assert.NotContains(t, response, secret)
		}
	}
}

// TestWhatEndsTheGuest: an unforeseen error is not made to look like the network's.
func TestWhatEndsTheGuest(t *testing.T) {
	unforeseen := errors.New("unforeseen")
	for _, err := range []error{unforeseen, fmt.Errorf("%w", context.Canceled), &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrDenied}} {
		for _, function := range []string{request, send, receive} {
			g := newGuest(t, &Session{Network: &answering{err: err}})
			_, _, got := g.try(function, valid[function], nil)
			assert.Equal(t, err, got)
		}
	}
}

// TestEndOfTheCallEndsTheGuest, with the reason for it, whatever came of the request; a request's own
// timeout does not.
func TestEndOfTheCallEndsTheGuest(t *testing.T) {
	late := &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrDeadline, Message: "no answer in time"}
	for _, function := range []string{request, send, receive} {
		status, _ := newGuest(t, &Session{Network: &answering{err: late}}).call(function, valid[function], nil)
		assert.Equal(t, statusDeadline, status)
	}
	bug := errors.New("a bug")
	for function, failures := range map[string][]error{
		request: {late}, send: {late}, receive: {late},
		toolCall: {nil, bug, &hostfuncs.Error{Op: "call", Kind: hostfuncs.ErrUnavailable, Message: "cancelled"}},
		emit:     {nil, bug, &hostfuncs.Error{Op: "emit", Kind: hostfuncs.ErrUnavailable, Message: "the call has ended"}},
	} {
		for _, failure := range failures {
			ctx, cancel := context.WithCancelCause(t.Context())
			end := func() { cancel(errOver) }
			session := &Session{Network: &answering{err: failure, during: end}, Tools: &caller{err: failure, during: end}, Stream: &speaker{err: failure, during: end}}
			g := newGuest(t, session)
			g.ctx = With(ctx, session)
			_, _, err := g.try(function, valid[function], nil)
			assert.ErrorIs(t, err, errOver, function)
		}
	}
}

// TestNothingBeginsAfterTheEndOfTheCall: reading one long request after the other would put
// off the guest's end.
func TestNothingBeginsAfterTheEndOfTheCall(t *testing.T) {
	for name, text := range valid {
		wire := &answering{}
		g := newGuest(t, &Session{Network: wire, Secrets: known{}})
		ctx, cancel := context.WithCancelCause(g.ctx)
		cancel(errOver)
		g.ctx = ctx
		_, _, err := g.try(name, text, nil)
		assert.Equal(t, errOver, err)
		assert.Empty(t, wire.requests)
		assert.Empty(t, wire.received)
	}
}

// TestBodiesAreCopiedWhileThereIsTime, a mebibyte after the other.
func TestBodiesAreCopiedWhileThereIsTime(t *testing.T) {
	const size = copied + 1
	// Before the call, before the memory is found, before each of two pieces, and after the last one.
	for looks, want := range []error{errOver, errOver, errOver, errOver, errOver, nil} {
		wire := &answering{}
		g := newGuest(t, &Session{Network: wire})
		ctx, cancel := context.WithCancelCause(g.ctx)
		cancel(errOver)
		g.ctx = &lasting{ctx, looks}
		_, _, err := g.try(send, valid[send], bytes.Repeat([]byte{'x'}, size))
		assert.Equal(t, want, err)
		assert.Equal(t, want == nil, len(wire.requests) == 1 && len(wire.requests[0].Body) == size)
	}
}

// TestAttackRefusedBodies: the host allocates nothing for a body that it refuses, or that comes when the call is over.
// The control is a body that it accepts: it copies that one once.
func TestAttackRefusedBodies(t *testing.T) {
	const size = 16 << 20
	over := With(t.Context(), &Session{})
	for name, c := range map[string]struct {
		session *Session
		change  func(ctx context.Context) context.Context
		copies  bool
	}{
		"no network": {session: &Session{}},
		"a refused request": {session: &Session{Network: &answering{refuses: &hostfuncs.Error{
			Kind: hostfuncs.ErrDenied, Denial: &tool.Denial{Permission: "network"},
		}}}},
		"a body over the limit": {session: &Session{Network: &answering{}, MaxBody: size - 1}},
		"a call that is over": {session: &Session{Network: &answering{}}, change: func(ctx context.Context) context.Context {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return &lasting{ended, 1} // it ends as the function begins
		}},
		"control": {session: &Session{Network: &answering{}}, copies: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.session
			s.MaxBody, s.Work = cmp.Or(s.MaxBody, size), NewWork(1)
			for _, function := range []string{request, send} {
				g := newGuest(t, s)
				if c.change != nil {
					g.ctx = c.change(g.ctx)
				}
				g.memory = make(flat, requestAt+size+bodyAt)
				copy(g.memory[requestAt:], valid[function])
				used := allocated(func() {
					_, err := g.raw(function, requestAt, uint64(len(valid[function])), bodyAt, size)
					assert.Equal(t, c.change != nil, err != nil)
				})
				assert.Equal(t, c.copies, used > size/2, "%s: %d bytes", function, used)
				assert.Less(t, used, uint64(size*5/4), "no more than one copy")

				line := []byte(valid[function])
				var room []byte
				var refused *wasi.Response
				var err error
				used = allocated(func() { room, refused, err = Begin(g.ctx, function, line, size) })
				assert.Equal(t, c.copies, used > size/2, "%s, of a script: %d bytes", function, used)
				if c.copies {
					require.NoError(t, err)
					require.Nil(t, refused)
					room = room[:len(line)+size]
					used = allocated(func() { _, err = Invoke(g.ctx, function, room, len(line)) })
					require.NoError(t, err)
					assert.Less(t, used, uint64(size/2), "what a script has written is not copied")
					sent := s.Network.(*answering).requests
					assert.Len(t, sent[len(sent)-1].Body, size)
				} else {
					assert.True(t, refused != nil || err != nil)
				}
			}
		})
	}
	for _, name := range []string{"no.function", emit, toolCall} {
		_, refused, err := Begin(over, name, []byte("{}"), size)
		require.NoError(t, err)
		assert.EqualValues(t, statusInvalid, refused.Status, name)
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLongBodiesTakeTurns: a call that waits for its turn to copy a long body gives up when it ends. A short body needs
// no turn.
func TestLongBodiesTakeTurns(t *testing.T) {
	work := NewWork(1)
	work.places <- struct{}{}
	ctx, cancel := context.WithCancelCause(t.Context())
	short, err := work.Copy(ctx, make([]byte, copied))
	require.NoError(t, err)
	assert.Len(t, short, copied)
	time.AfterFunc(time.Millisecond, func() { cancel(errOver) })
	_, err = work.Copy(ctx, make([]byte, copied+1))
	require.ErrorIs(t, err, errOver)
	_, err = work.room(ctx, copied+1)
	require.ErrorIs(t, err, errOver)
	<-work.places
	long, err := work.Copy(t.Context(), bytes.Repeat([]byte("x"), copied+1))
	require.NoError(t, err)
	assert.Equal(t, bytes.Repeat([]byte("x"), copied+1), long)
}

// lasting is a context that has not ended for the first looks calls of Err.
type lasting struct {
	context.Context
	looks int
}

func (l *lasting) Err() error {
	if l.looks--; l.looks >= 0 {
		return nil
	}
	return l.Context.Err()
}

var errOver = errors.New("the call is over")

func TestReceiptIsWhole(t *testing.T) {
	denial := tool.Denial{Permission: "secrets", Value: "A<&>B", Rule: "no grant", Allow: tool.Allow{
		Grant: json.RawMessage(`{"tools":["a"],"env":{"<&>":null}}`),
	}}
	g := newGuest(t, &Session{Secrets: known{"A<&>B": denial}})
	status, response := g.call(exists, `{"name":"A<&>B"}`, nil)
	assert.Equal(t, statusDenied, status)
	assert.Equal(t, `{"permission":"secrets","value":"A<&>B","rule":"no grant","allow":{"manifest":null,"grant":{"tools":["a"],"env":{"<&>":null}}}}`, response)
}

func TestReadLetsGoOfWhatWasRead(t *testing.T) {
	session := &Session{Network: &answering{response: network.Response{Body: bytes.Repeat([]byte("x"), 1000)}}}
	g := newGuest(t, session)
	_, _ = g.call(request, valid[request], nil)
	assert.Equal(t, response{}, session.held)
}
