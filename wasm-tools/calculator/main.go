// Command calculator is a tool that evaluates one arithmetic expression. It is a WASI
// command: standard input holds the arguments, a JSON object, and standard output
// receives one result object. The exit code is 0 also for a failure that the result
// reports; it is 1 where the result could not be written.
package main

import (
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		os.Stderr.WriteString("calculator: " + err.Error() + "\n")
		os.Exit(1)
	}
}

// run answers one call. Its error is that of writing; all others are in the result.
func run(in io.Reader, out io.Writer) error {
	arguments, err := readArguments(in)
	if err != nil {
		return write(out, failure(err))
	}
	return write(out, calculate(arguments))
}
