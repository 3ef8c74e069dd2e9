package extism

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/runtime/internal/abi"
)

// wide is a kernel's memory.
type wide []byte

func (w wide) View(offset, length uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(length)
	return w[offset:end], end <= uint64(len(w))
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestNothingTooLongIsCopied: a plug-in passes texts as long as its memory, which the host must not
// hold a second time.
func TestNothingTooLongIsCopied(t *testing.T) {
	const length = 64 << 20
	memory := make(wide, length)
	ask := func(length uint64) *call {
		return &call{ctx: t.Context(), session: &Session{MaxBody: 1 << 20, MaxError: 1 << 10}, memory: memory, stack: []uint64{0, length, 0, length}}
	}
	for name, f := range map[string]func(*call) (int64, error){
		"config": config, "variable": variable, "set_variable": setVariable, "delete_variable": deleteVariable, "request": request,
	} {
		used := allocated(func() {
			_, err := f(ask(length))
			require.ErrorContains(t, err, "it passed a", name)
		})
		assert.Less(t, used, uint64(1<<20), name)
	}
	used := allocated(func() {
		session := ask(length)
		binary.LittleEndian.PutUint32(memory[12:], length)
		_, err := takeLeft(session)
		require.NoError(t, err)
		assert.Len(t, session.session.Error, 1<<10)
	})
	assert.Less(t, used, uint64(1<<20))
	_, err := config(ask(3)) // the control: a short name is read
	require.NoError(t, err)
}

// refusing is a network that refuses each request, or else answers none.
type refusing struct {
	err  error
	sent []network.Request
}

func (r *refusing) Check(context.Context, network.Request, int) error { return r.err }

func (r *refusing) Do(_ context.Context, request network.Request) (network.Response, error) {
	r.sent = append(r.sent, request)
	return network.Response{}, nil
}

// TestAttackRefusedBodies: the host copies nothing of a body that it refuses, or that comes when the call is over. The
// control is a body that it accepts: it copies that one once.
func TestAttackRefusedBodies(t *testing.T) {
	const length = 16 << 20
	text := `{"url": "https://a.example/"}`
	memory := make(wide, len(text)+length)
	copy(memory, text)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		wire   refusing
		copies bool
	}{
		"a refused request":   {ctx: t.Context(), wire: refusing{err: &hostfuncs.Error{Kind: hostfuncs.ErrDenied}}},
		"a call that is over": {ctx: ended},
		"control":             {ctx: t.Context(), copies: true},
	} {
		used := allocated(func() {
			_, err := request(&call{
				ctx: c.ctx, session: &Session{MaxBody: length, Network: &c.wire, Work: abi.NewWork(1)}, memory: memory,
				stack: []uint64{0, uint64(len(text)), uint64(len(text)), length},
			})
			assert.Equal(t, c.copies, err == nil, name)
		})
		assert.Equal(t, c.copies, used > length/2, "%s: %d bytes", name, used)
		assert.Less(t, used, uint64(length*5/4), name)
		assert.Equal(t, c.copies, len(c.wire.sent) == 1, name)
	}
}

// TestHeadersOfOneName: a server sends as many headers of one name as fit, and the plug-in reads them
// again and again.
func TestHeadersOfOneName(t *testing.T) {
	session := &Session{headers: [][2]string{{"X-A", "first"}}}
	for range 16 << 10 {
		session.headers = append(session.headers, [2]string{"x-a", "b"})
	}
	used := allocated(func() {
		length, err := headers(&call{ctx: t.Context(), session: session})
		require.NoError(t, err)
		assert.EqualValues(t, len(session.held), length)
	})
	assert.Less(t, used, uint64(8<<20))
	var joined map[string]string
	require.NoError(t, json.Unmarshal(session.held, &joined))
	assert.Equal(t, map[string]string{"x-a": "first" + strings.Repeat(",b", 16<<10)}, joined)
}

// TestWhatIsNoRequest: the error describes the fault in terms of JSON, not of Go.
func TestWhatIsNoRequest(t *testing.T) {
	for text, want := range map[string]string{
		`{"url": "http://a`:                 "it passed to http_request what is not JSON: unexpected end of JSON input",
		`["http://a"]`:                      "it passed to http_request what is not a request: its JSON is of type array, not an object",
		`{"url": 5}`:                        "it passed to http_request what is not a request: its member url has, or holds, a value of type number",
		`{"headers": {"a": ["b"]}}`:         "it passed to http_request what is not a request: its member headers has, or holds, a value of type array",
		`{"url": "http://a", "headers": 1}`: "it passed to http_request what is not a request: its member headers has, or holds, a value of type number",
	} {
		_, err := request(&call{ctx: t.Context(), session: &Session{}, memory: wide(text), stack: []uint64{0, uint64(len(text)), 0, 0}})
		assert.EqualError(t, err, want, text)
	}
}

// TestInputIsCopiedOrHeld: an input for which the kernel has room is there after one call. A longer one is held for
// take.
func TestInputIsCopiedOrHeld(t *testing.T) {
	for length, held := range map[int]bool{0: false, 1: false, 8: false, 9: true, 64: true} {
		text, memory := []byte(strings.Repeat("x", length)), make(wide, 32)
		c := &call{ctx: t.Context(), session: &Session{Input: text}, memory: memory, stack: []uint64{16, 8}}
		got, err := input(c)
		require.NoError(t, err)
		assert.EqualValues(t, length, got)
		want := make(wide, 32)
		if !held {
			copy(want[16:], text)
		}
		assert.Equal(t, want, memory, length)
		assert.Equal(t, held, c.session.held != nil, length)
	}
}
