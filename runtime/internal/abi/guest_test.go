package abi

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/tool"
)

// flat is a guest's memory for tests that need no guest.
type flat []byte

func (m flat) View(offset, length uint32) ([]byte, bool) {
	if uint64(offset)+uint64(length) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+length : offset+length], true
}

// guest calls functions of caisson:* as a guest would.
type guest struct {
	t         testing.TB
	ctx       context.Context
	memory    flat
	functions map[string]hostfuncs.Function
}

func newGuest(t testing.TB, s *Session) *guest {
	return &guest{t: t, ctx: With(t.Context(), s), memory: make(flat, 4<<20), functions: byName()}
}

func byName() map[string]hostfuncs.Function {
	functions := map[string]hostfuncs.Function{}
	for _, f := range Functions() {
		functions[f.Module+"."+f.Name] = f
	}
	return functions
}

// raw calls a function and returns its result, or the error that would end the guest.
func (g *guest) raw(name string, params ...uint64) (uint64, error) {
	f, ok := g.functions[name]
	require.True(g.t, ok, name)
	require.Len(g.t, params, len(f.Params), name)
	stack := append([]uint64(nil), params...)
	err := f.Call(g.ctx, g.memory, stack)
	return stack[0], err
}

func (g *guest) mustRaw(name string, params ...uint64) uint64 {
	g.t.Helper()
	result, err := g.raw(name, params...)
	require.NoError(g.t, err)
	return result
}

// The guest's addresses of requests, bodies and the buffer.
const (
	requestAt = 1 << 20
	bodyAt    = 2 << 20
	bufferAt  = 3 << 20
)

// try calls a function with a request and, if it takes one, a body.
func (g *guest) try(name, request string, body []byte) (status, []byte, error) {
	g.t.Helper()
	copy(g.memory[requestAt:], request)
	params := []uint64{requestAt, uint64(len(request))}
	if len(g.functions[name].Params) == 4 {
		copy(g.memory[bodyAt:], body)
		params = append(params, bodyAt, uint64(len(body)))
	}
	result, err := g.raw(name, params...)
	if err != nil {
		return 0, nil, err
	}
	response := g.readAll()
	require.Len(g.t, response, int(uint32(result)), name)
	return status(result >> 32), response, nil
}

func (g *guest) call(name, request string, body []byte) (status, string) {
	g.t.Helper()
	status, response, err := g.try(name, request, body)
	require.NoError(g.t, err, name)
	return status, string(response)
}

// read reads up to n bytes of the response.
func (g *guest) read(n int) []byte {
	g.t.Helper()
	count, err := g.raw("caisson:io@1.read", bufferAt, uint64(n))
	require.NoError(g.t, err)
	require.LessOrEqual(g.t, count, uint64(n))
	return append([]byte(nil), g.memory[bufferAt:bufferAt+count]...)
}

func (g *guest) readAll() []byte {
	var all []byte
	for {
		piece := g.read(1000)
		if len(piece) == 0 {
			return all
		}
		all = append(all, piece...)
	}
}

// answering is a network that gives every request the same answer. It records the requests.
type answering struct {
	response network.Response
	id       int
	err      error
	during   func() // if set, is called with each request
	requests []network.Request
	received []int
	refuses  error    // of Check
	checked  []string // URL and length of the body
}

func (n *answering) work() {
	if n.during != nil {
		n.during()
	}
}

func (n *answering) Check(_ context.Context, r network.Request, body int) error {
	n.checked = append(n.checked, fmt.Sprint(r.URL, " ", body))
	return n.refuses
}

func (n *answering) Do(_ context.Context, r network.Request) (network.Response, error) {
	n.work()
	n.requests = append(n.requests, r)
	return n.response, n.err
}

func (n *answering) Send(_ context.Context, r network.Request) (int, error) {
	n.work()
	n.requests = append(n.requests, r)
	return n.id, n.err
}

func (n *answering) Receive(_ context.Context, id int) (network.Response, error) {
	n.work()
	n.received = append(n.received, id)
	return n.response, n.err
}

// caller is a host in which every call has the same end. It records the calls.
type caller struct {
	record tool.Record
	err    error
	asked  [][2]string
	during func()
}

func (c *caller) Call(_ context.Context, name, arguments string) (tool.Record, error) {
	c.asked = append(c.asked, [2]string{name, arguments})
	if c.during != nil {
		c.during()
	}
	return c.record, c.err
}

// speaker accepts all emissions within the limit, or fails. It records them.
type speaker struct {
	limit    int // bytes of all requests; zero for any number
	err      error
	admitted []int
	said     []tool.Emission
	during   func()
}

func (s *speaker) Admit(bytes int) error {
	if s.limit > 0 && bytes > s.limit {
		return &hostfuncs.Error{Op: "admit", Kind: hostfuncs.ErrLimit, Limit: "output", Value: int64(s.limit)}
	}
	s.admitted = append(s.admitted, bytes)
	return nil
}

func (s *speaker) Emit(_ context.Context, emission tool.Emission) error {
	s.said = append(s.said, emission)
	if s.during != nil {
		s.during()
	}
	return s.err
}

// known are secrets by name: whether they are there, or why they are denied.
type known map[string]any

func (k known) Check(name string) (bool, *tool.Denial) {
	switch known := k[name].(type) {
	case bool:
		return known, nil
	case tool.Denial:
		return false, &known
	}
	return false, &tool.Denial{Permission: "secrets", Value: name, Rule: "the manifest does not ask for it"}
}

const (
	request  = "caisson:net@1.request"
	send     = "caisson:net@1.send"
	receive  = "caisson:net@1.receive"
	exists   = "caisson:secrets@1.exists"
	toolCall = "caisson:tools@1.call"
	emit     = "caisson:stream@1.emit"
	get      = "caisson:context@1.get"
	read     = "caisson:io@1.read"
)

// valid is a request that each function takes.
var valid = map[string]string{
	request:  `{"method":"GET","url":"https://api.example.com/","headers":[]}`,
	send:     `{"method":"GET","url":"https://api.example.com/","headers":[]}`,
	receive:  `{"id":1}`,
	exists:   `{"name":"SEARCH_KEY"}`,
	toolCall: `{"name":"web_search","arguments":{"query":"x"}}`,
	emit:     `{"type":"text","text":"x"}`,
	get:      `{}`,
}

// BenchmarkCall measures the cost that the protocol adds to a call, including reading the response.
func BenchmarkCall(b *testing.B) {
	const body = 64 << 10
	session := &Session{
		Network: &answering{response: network.Response{Status: 200, URL: "https://api.example.com/", Body: make([]byte, body)}},
		Secrets: known{"SEARCH_KEY": true},
	}
	for _, name := range []string{request, exists} {
		b.Run(name, func(b *testing.B) {
			g := newGuest(b, session)
			g.ctx = With(b.Context(), session)
			params := make([]uint64, len(g.functions[name].Params))
			params[0], params[1] = requestAt, uint64(copy(g.memory[requestAt:], valid[name]))
			b.ReportAllocs()
			for b.Loop() {
				g.mustRaw(name, params...)
				n := g.mustRaw(read, bufferAt, body+1024)
				require.Positive(b, n)
				session.Network.(*answering).requests = nil
			}
		})
	}
}

// BenchmarkEmit measures the host's cost of an emission without and with a listener.
func BenchmarkEmit(b *testing.B) {
	image := `{"type":"image","mime_type":"image/png","partial":true,"data":"` + strings.Repeat("abcd", 48<<10) + `"}`
	deep := `{"type":"json","data":` + strings.Repeat("[", 60) + strings.Repeat("[1],", (maxEmission-200)/4) + "1" + strings.Repeat("]", 60) + `}`
	for name, request := range map[string]string{"text": valid[emit], "partial image of 144 KiB": image, "longest": deep} {
		for who, show := range map[string]func(tool.Emission) error{"nobody": nil, "somebody": func(tool.Emission) error { return nil }} {
			b.Run(name+" for "+who, func(b *testing.B) {
				session := &Session{}
				g := newGuest(b, session)
				g.ctx = With(context.WithoutCancel(b.Context()), session)
				n := uint64(copy(g.memory[requestAt:], request))
				b.ReportAllocs()
				b.SetBytes(int64(n))
				for b.Loop() {
					session.Stream = stream.Open(stream.Options{Bytes: maxEmission, Emit: show})
					result := g.mustRaw(emit, requestAt, n)
					require.Zero(b, result)
				}
			})
		}
	}
}
