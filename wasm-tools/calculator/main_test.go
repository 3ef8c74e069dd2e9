package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/calculator/expr"
)

func TestRun(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{"expression":"2+2"}`, `{"success":true,"output":"4","data":{"value":4,"text":"4","exact":true}}`},
		{`{"expression":"1/3","precision":3}`, `{"success":true,"output":"0.333","data":{"value":0.333,"text":"0.333","exact":false}}`},
		{`{"expression":"1/3","precision":3.0}`, `{"success":true,"output":"0.333","data":{"value":0.333,"text":"0.333","exact":false}}`},
		{`{"expression":"10^400/3"}`, `{"success":true,"output":"3.3333333333333333333e399","data":{"text":"3.3333333333333333333e399","exact":false}}`},
		{`{"expression":"1e-400"}`, `{"success":true,"output":"1e-400","data":{"text":"1e-400","exact":true}}`},
		{`{"expression":"10^127"}`, `{"success":true,"output":"1` + zeros(127) + `","data":{"value":1` + zeros(127) + `,"text":"1` + zeros(127) + `","exact":true}}`},
		{`{"expression":"10^128"}`, `{"success":true,"output":"1` + zeros(128) + `","data":{"text":"1` + zeros(128) + `","exact":true}}`},
		{`{"expression":"1-1"}`, `{"success":true,"output":"0","data":{"value":0,"text":"0","exact":true}}`},
		{`{"expression":"3 \u00d7 4"}`, `{"success":true,"output":"12","data":{"value":12,"text":"12","exact":true}}`},
		{`{"expression":"1 < 2"}`, `{"success":false,"error":"unexpected character '<' at column 3; comparisons and assignments are not supported"}`},
		{`{"expression":"1/0"}`, `{"success":false,"error":"division by zero at column 2"}`},
		{``, `{"success":false,"error":"the arguments are not a JSON object such as {\"expression\": \"2 + 2\"}"}`},
		{`null`, `{"success":false,"error":"the arguments are not a JSON object such as {\"expression\": \"2 + 2\"}"}`},
		{`[1]`, `{"success":false,"error":"the arguments are not a JSON object such as {\"expression\": \"2 + 2\"}"}`},
		{`{"expression":"1"} {}`, `{"success":false,"error":"the arguments are not a JSON object such as {\"expression\": \"2 + 2\"}"}`},
		{"{\"expression\":\"\xff\"}", `{"success":false,"error":"the arguments are not valid UTF-8"}`},
		{`{}`, `{"success":false,"error":"the argument \"expression\" is missing"}`},
		{`{"Expression":"1"}`, `{"success":false,"error":"unknown argument \"Expression\"; want expression and, optionally, precision"}`},
		{`{"expression":1}`, `{"success":false,"error":"expression must be a string"}`},
		{`{"expression":null}`, `{"success":false,"error":"expression must be a string"}`},
		{`{"expression":"\ud800"}`, `{"success":false,"error":"unexpected character '�' at column 1"}`},
	} {
		var out bytes.Buffer
		require.NoError(t, run(strings.NewReader(test.in), &out), test.in)
		assert.Equal(t, test.want+"\n", out.String(), test.in)
	}
}

func zeros(n int) string { return strings.Repeat("0", n) }

func TestPrecisionIsChecked(t *testing.T) {
	for _, precision := range []string{"0", "-1", "1001", "2.5", "1e2", "1e999999999", `"3"`, "true", "null", "{}", "[]", strings.Repeat("9", 100)} {
		var out bytes.Buffer
		require.NoError(t, run(strings.NewReader(`{"expression":"1","precision":`+precision+`}`), &out))
		assert.Equal(t, `{"success":false,"error":"precision must be a whole number from 1 to 1000"}`+"\n", out.String(), precision)
	}
}

func TestInputIsBounded(t *testing.T) {
	var out bytes.Buffer
	long := `{"expression":"` + strings.Repeat("1", maxInput) + `"}`
	require.NoError(t, run(strings.NewReader(long), &out))
	assert.Contains(t, out.String(), "the arguments have more than 262144 bytes")

	// The longest expression fits, with every character escaped.
	out.Reset()
	longest := `{"expression":"` + strings.Repeat(`\u0031`, expr.MaxLength) + `"}`
	require.NoError(t, run(strings.NewReader(longest), &out))
	assert.Contains(t, out.String(), `"success":true`)
}

func TestBrokenStreams(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(iotest.ErrReader(errors.New("gone")), &out))
	assert.Equal(t, `{"success":false,"error":"cannot read the arguments: gone"}`+"\n", out.String())

	full := errors.New("full")
	assert.ErrorIs(t, run(strings.NewReader(`{"expression":"1"}`), failingWriter{full}), full)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
