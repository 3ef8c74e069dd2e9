package call_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

type arguments struct {
	Name string `json:"name"`
}

func greet(a arguments) (call.Result, error) {
	if a.Name == "" {
		return call.Result{}, errors.New("the name is missing")
	}
	return call.Result{Success: true, Output: "hello <" + a.Name + ">", Data: map[string]int{"length": len(a.Name)}}, nil
}

func TestAnswer(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{"name":"Ada"}`, `{"success":true,"output":"hello <Ada>","data":{"length":3}}`},
		{`{}`, `{"success":false,"error":"the name is missing"}`},
		{`{"nome":"Ada"}`, `{"success":false,"error":"the arguments are not the JSON object that this tool takes: json: unknown field \"nome\""}`},
		{`{"name":"Ada"}{}`, `{"success":false,"error":"the arguments are more than one JSON object"}`},
		{``, `{"success":false,"error":"the arguments are not the JSON object that this tool takes: EOF"}`},
	} {
		var out bytes.Buffer
		require.NoError(t, call.Answer(strings.NewReader(test.in), &out, greet), test.in)
		assert.Equal(t, test.want+"\n", out.String(), test.in)
	}
}

func TestBrokenStreams(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, call.Answer(iotest.ErrReader(errors.New("gone")), &out, greet))
	assert.Equal(t, `{"success":false,"error":"cannot read the arguments: gone"}`+"\n", out.String())

	out.Reset()
	require.NoError(t, call.Answer(strings.NewReader(`{"name":"`+strings.Repeat("a", 2<<20)+`"}`), &out, greet))
	assert.Contains(t, out.String(), "more than 2097152 bytes")

	full := errors.New("full")
	assert.ErrorIs(t, call.Answer(strings.NewReader(`{"name":"Ada"}`), failingWriter{full}, greet), full)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
