package extism

import (
	"encoding/binary"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	_, err := config(ask(3)) // the control: what is short is read
	require.NoError(t, err)
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

// TestWhatIsNoRequest: the error names what is wrong as JSON has it, not as Go does.
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

// TestInputIsCopiedOrHeld: what fits where the kernel has room is there after one call, and anything else
// stays for take.
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
