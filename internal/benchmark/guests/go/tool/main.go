// Command tool answers one call: arguments on stdin, the result on stdout. It is an
// ordinary program for WASI and any other system.
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
