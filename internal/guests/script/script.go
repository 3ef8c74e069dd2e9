//go:build wasip1

// Package script is what the probes have in common: they do what their input says, step by step,
// and print the result of each step.
package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// Step is one thing to do.
type Step interface {
	// Run does it and returns the result, which JSON can write.
	Run() any
}

// Main runs the steps {"steps": […]} of the input and prints the results, preceded by those of what
// the program did before. It ends the program if it fails.
func Main[S Step](done ...any) {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		Fail(err)
	}
	var todo struct {
		Steps []S `json:"steps"`
	}
	if err := json.Unmarshal(input, &todo); err != nil {
		Fail(err)
	}
	for _, step := range todo.Steps {
		done = append(done, step.Run())
	}
	if err := json.NewEncoder(os.Stdout).Encode(done); err != nil {
		Fail(err)
	}
}

func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Failure is an error of the SDK.
type Failure struct {
	Text       string          `json:"text"`
	Op         string          `json:"op,omitempty"`
	Status     caisson.Status  `json:"status"`
	Message    string          `json:"message,omitempty"`
	Denial     *caisson.Denial `json:"denial,omitempty"`
	LimitName  string          `json:"limit,omitempty"`
	LimitValue int64           `json:"value,omitempty"`
}

func NewFailure(err error) *Failure {
	var known *caisson.Error
	if !errors.As(err, &known) {
		return &Failure{Text: err.Error()}
	}
	return &Failure{err.Error(), known.Op, known.Status, known.Message, known.Denial, known.LimitName, known.LimitValue}
}

// ReadFile returns the content of a file, or the error that reading it failed with.
func ReadFile(name string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// IORead is the host function that copies the next bytes of the last response.
//
//go:wasmimport caisson:io@1 read
func IORead(at, length uint32) int32

// Response reads the rest of the response to the last host call, in pieces that are shorter than many responses.
func Response() (response []byte) {
	buffer := make([]byte, 1000)
	for {
		n := IORead(Span(buffer))
		if n <= 0 {
			return response
		}
		response = append(response, buffer[:n]...)
	}
}

// Span returns the address and the length of bytes, which the caller must keep alive.
func Span(bytes []byte) (at, length uint32) {
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))), uint32(len(bytes))
}
