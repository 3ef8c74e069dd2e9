package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
)

func ask(t *testing.T, arguments string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, call.Answer(strings.NewReader(arguments), &out, calculate))
	return out.String()
}

// TestResults complements the tests in tool.yaml, which ../tools_test.go runs.
func TestResults(t *testing.T) {
	zeros := strings.Repeat("0", 127)
	for in, want := range map[string]string{
		`{"expression":"1/3","precision":3.0}`: `{"success":true,"output":"0.333","data":{"value":0.333,"text":"0.333","exact":false}}`,
		`{"expression":"10^400/3"}`:            `{"success":true,"output":"3.3333333333333333333e399","data":{"text":"3.3333333333333333333e399","exact":false}}`,
		`{"expression":"1e-400"}`:              `{"success":true,"output":"1e-400","data":{"text":"1e-400","exact":true}}`,
		`{"expression":"10^127"}`:              `{"success":true,"output":"1` + zeros + `","data":{"value":1` + zeros + `,"text":"1` + zeros + `","exact":true}}`,
		`{"expression":"10^128"}`:              `{"success":true,"output":"1` + zeros + `0","data":{"text":"1` + zeros + `0","exact":true}}`,
		`{"expression":"1-1"}`:                 `{"success":true,"output":"0","data":{"value":0,"text":"0","exact":true}}`,
		`{"expression":"3 \u00d7 4"}`:          `{"success":true,"output":"12","data":{"value":12,"text":"12","exact":true}}`,
		`{"expression":"\ud800"}`:              `{"success":false,"error":"unexpected character '�' at column 1"}`,
		`{}`:                                   `{"success":false,"error":"the expression is empty; write something like 2 + 2"}`,
		`{"expression":"1","precision":1001}`:  `{"success":false,"error":"the precision must be from 1 to 1000 digits"}`,
	} {
		assert.Equal(t, want+"\n", ask(t, in), in)
	}
	// The longest expression fits, with every character escaped.
	assert.Contains(t, ask(t, `{"expression":"`+strings.Repeat(`\u0031`, expr.MaxLength)+`"}`), `"success":true`)
}

func TestDataFitsTheResultSchema(t *testing.T) {
	m, err := manifests.Load("tool.yaml")
	require.NoError(t, err)
	for _, expression := range []string{"0", "-1/3", "1e-400", "1e-300", "1e-50", "170!", "171!", "5000!", "exp(500)", "2^1023", "2^1024", "10**30/7", "1e308/3"} {
		var answer struct{ Data json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(ask(t, `{"expression":"`+expression+`"}`)), &answer))
		assert.NoError(t, m.Result.Validate(t.Context(), answer.Data), expression)
	}
}

func TestManifestsNameEveryFunction(t *testing.T) {
	for file, variable := range map[string]string{"tool.yaml": "", "../plot/tool.yaml": "x"} {
		m, err := manifests.Load(file)
		require.NoError(t, err)
		words := strings.FieldsFunc(m.Description, func(r rune) bool { return strings.ContainsRune(" ,.()[]\n", r) })
		for _, name := range expr.Functions(variable) {
			assert.Contains(t, words, name)
		}
	}
}
