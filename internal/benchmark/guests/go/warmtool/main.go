// Command warmtool is command tool of an author who warms it: before it reads its
// arguments it answers a sample, so that a snapshot taken at the first read holds the
// caches and the memory that a call needs.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/caisson-run/caisson/internal/benchmark/guests/go/handler"
)

// tool is in the program's memory, where a call would find what an earlier one left.
var tool handler.Handler

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if err := warm(); err != nil {
		return err
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	output, err := tool.Handle(input)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(output)
	return err
}

// warm answers with a separate handler, so that the sample is not counted as a call.
func warm() error {
	var sample handler.Handler
	_, err := sample.Handle([]byte(`{"text": "sample", "nums": [1, 2, 3]}`))
	return err
}
