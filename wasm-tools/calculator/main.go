// Command calculator is a tool that evaluates one arithmetic expression. Its arguments come as a
// JSON object on standard input, and the result goes as one to standard output.
package main

import (
	"encoding/json"
	"io"
	"os"
	"strconv"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
)

// arguments are what the tool takes.
type arguments struct {
	Expression string `json:"expression"`
	// Precision is 0 where it was not given. It is a whole number, but may be written as 5.0.
	Precision float64 `json:"precision"`
}

// data is the value for programs.
type data struct {
	// Value is the text as a JSON number. It is left out where JSON readers would
	// fail on it: beyond the range of a 64-bit float, or over maxNumber characters.
	Value json.Number `json:"value,omitempty"`
	Text  string      `json:"text"`
	Exact bool        `json:"exact"`
}

// maxNumber is the longest number that the runtime's schema validation reads.
const maxNumber = 128

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		os.Stderr.WriteString("calculator: " + err.Error() + "\n")
		os.Exit(1)
	}
}

// run answers one call. Its error is that of writing.
func run(in io.Reader, out io.Writer) error { return call.Answer(in, out, calculate) }

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
