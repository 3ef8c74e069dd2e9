// Package call implements the protocol of a first-party tool: it reads a JSON object of arguments from
// standard input and writes one result object to standard output.
package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxInput bounds the arguments, in bytes. A model may write half as much.
const maxInput = 2 << 20

// Result is a tool's printed result. If the tool failed, it has only an Error, for the model.
type Result struct {
	Success bool   `json:"success"`
	Output  string `json:"output,omitempty"`
	Data    any    `json:"data,omitempty"`
	// Content holds parts other than plain text.
	Content []Content `json:"content,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Content is one part of a result, such as an image.
type Content struct {
	Type     string `json:"type"` // image or file
	Data     []byte `json:"data"`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
}

// Main is the main function of a tool: it answers the call on the standard streams.
func Main[Arguments any](run func(Arguments) (Result, error)) {
	if err := Answer(os.Stdin, os.Stdout, run); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Answer reads the arguments, passes them to run and writes the result. An error of run becomes a
// failed result. Answer itself fails only if it cannot write.
func Answer[Arguments any](in io.Reader, out io.Writer, run func(Arguments) (Result, error)) error {
	result, err := answer(in, run)
	if err != nil {
		result = Result{Error: err.Error()}
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}

func answer[Arguments any](in io.Reader, run func(Arguments) (Result, error)) (Result, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return Result{}, fmt.Errorf("cannot read the arguments: %w", err)
	}
	if len(text) > maxInput {
		return Result{}, fmt.Errorf("the arguments have more than %d bytes", maxInput)
	}
	var arguments Arguments
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&arguments); err != nil {
		return Result{}, fmt.Errorf("the arguments are not the JSON object that this tool takes: %w", err)
	}
	if decoder.More() {
		return Result{}, errors.New("the arguments are more than one JSON object")
	}
	return run(arguments)
}
