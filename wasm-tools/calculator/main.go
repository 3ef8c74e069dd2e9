// Command calculator is a tool that evaluates one arithmetic expression.
package main

import (
	"encoding/json"
	"strconv"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
)

// arguments are the tool's arguments.
type arguments struct {
	Expression string `json:"expression"`
	// Precision is 0 if absent. It is a whole number, but may be written as 5.0.
	Precision float64 `json:"precision"`
}

// data is the value for programs.
type data struct {
	// Value is the text as a JSON number. It is left out if JSON parsers would fail on it: beyond the
	// range of a 64-bit float, or over maxNumber characters.
	Value json.Number `json:"value,omitempty"`
	Text  string      `json:"text"`
	Exact bool        `json:"exact"`
}

// maxNumber is the length of the longest number that schema validation accepts.
const maxNumber = 128

func main() { call.Main(calculate) }

func calculate(a arguments) (call.Result, error) {
	expression, err := expr.Parse(a.Expression, "")
	if err != nil {
		return call.Result{}, err
	}
	value, err := expression.Evaluate(int(a.Precision))
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Success: true, Output: value.Text, Data: data{jsonNumber(value.Text), value.Text, value.Exact}}, nil
}

func jsonNumber(text string) json.Number {
	float, err := strconv.ParseFloat(text, 64)
	if len(text) > maxNumber || err != nil || float == 0 && text != "0" {
		return ""
	}
	return json.Number(text)
}
