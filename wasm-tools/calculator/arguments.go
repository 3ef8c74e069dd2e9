package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"unicode/utf8"

	"github.com/caisson-run/caisson/wasm-tools/calculator/expr"
)

// maxInput bounds standard input, in bytes. The longest expression fits in it even
// where every character is escaped.
const maxInput = 1 << 18

// arguments are what the tool is called with.
type arguments struct {
	Expression string
	Precision  int // 0 where it was not given
}

// readArguments reads one JSON object, strictly.
func readArguments(in io.Reader) (arguments, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return arguments{}, fmt.Errorf("cannot read the arguments: %w", err)
	}
	if len(text) > maxInput {
		return arguments{}, fmt.Errorf("the arguments have more than %d bytes", maxInput)
	}
	if !utf8.Valid(text) {
		return arguments{}, errors.New("the arguments are not valid UTF-8")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return arguments{}, errors.New(`the arguments are not a JSON object such as {"expression": "2 + 2"}`)
	}
	var parsed arguments
	given := false
	for name, value := range members {
		switch name {
		case "expression":
			given = true
			if value[0] != '"' || json.Unmarshal(value, &parsed.Expression) != nil {
				return arguments{}, errors.New("expression must be a string")
			}
		case "precision":
			if parsed.Precision, err = readPrecision(value); err != nil {
				return arguments{}, err
			}
		default:
			return arguments{}, fmt.Errorf("unknown argument %q; want expression and, optionally, precision", name)
		}
	}
	if !given {
		return arguments{}, errors.New(`the argument "expression" is missing`)
	}
	return parsed, nil
}

// readPrecision takes every JSON number that is whole, as JSON Schema does: 5.0 too.
func readPrecision(value json.RawMessage) (int, error) {
	failed := fmt.Errorf("precision must be a whole number from 1 to %d", expr.MaxPrecision)
	const longest = 32 // also bounds the exponent that SetString computes
	if len(value) > longest || bytes.ContainsAny(value, "eE\"tfn{[") {
		return 0, failed
	}
	number, ok := new(big.Rat).SetString(string(value))
	if !ok || !number.IsInt() || !number.Num().IsInt64() {
		return 0, failed
	}
	precision := number.Num().Int64()
	if precision < 1 || precision > expr.MaxPrecision {
		return 0, failed
	}
	return int(precision), nil
}
