package main

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/caisson-run/caisson/wasm-tools/calculator/expr"
)

// result is the object that the tool prints.
type result struct {
	Success bool   `json:"success"`
	Output  string `json:"output,omitempty"`
	Data    *data  `json:"data,omitempty"`
	Error   string `json:"error,omitempty"`
}

// data is the value for programs.
type data struct {
	// Value is the text as a JSON number. It is left out where JSON readers would
	// fail on it: beyond the range of a 64-bit float, or over maxNumber characters.
	Value json.Number `json:"value,omitempty"`
	Text  string      `json:"text"`
	Exact bool        `json:"exact"`
}

func calculate(a arguments) result {
	value, err := expr.Evaluate(a.Expression, expr.Options{Precision: a.Precision})
	if err != nil {
		return failure(err)
	}
	return result{
		Success: true,
		Output:  value.Text,
		Data:    &data{Value: jsonNumber(value.Text), Text: value.Text, Exact: value.Exact},
	}
}

func failure(err error) result { return result{Error: err.Error()} }

// maxNumber is the longest number that the runtime's schema validation reads.
const maxNumber = 128

func jsonNumber(text string) json.Number {
	if len(text) > maxNumber {
		return ""
	}
	float, err := strconv.ParseFloat(text, 64)
	if err != nil || float == 0 && text != "0" {
		return ""
	}
	return json.Number(text)
}

func write(out io.Writer, r result) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
