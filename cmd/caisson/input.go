package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	compiler       runtime.Compiler
	args           []string       // the command line, without the program
	exit           func(code int) // ends the process; nil if the command does not own the process
}

// maxInput is the maximum number of bytes read from a file or from stdin.
const maxInput = 64 << 20

// readInput reads a file, or stdin for "-". It returns when ctx is done, even if a read blocks.
func (e environment) readInput(ctx context.Context, name string) ([]byte, error) {
	var content []byte
	var err error
	read := make(chan struct{})
	go func() {
		defer close(read)
		content, err = e.readAll(name)
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-read:
		return content, err
	}
}

// readAll is readInput without a context. Opening a pipe, as shells pass for <(…), blocks.
func (e environment) readAll(name string) ([]byte, error) {
	from, called := e.stdin, "stdin"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, failed(exitUsage, fmt.Sprintf("cannot read %s: %s", name, check.Reason(err)),
				"name a file that can be read, or - for standard input")
		}
		defer file.Close()
		from, called = file, name
	}
	content, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err != nil {
		return nil, failed(exitUsage, fmt.Sprintf("cannot read %s: %s", called, check.Reason(err)),
			"name a file that can be read, or - for standard input")
	}
	if len(content) > maxInput {
		return nil, failed(exitUsage, fmt.Sprintf("%s has more than %d bytes", called, maxInput))
	}
	return content, nil
}

// printJSON writes a value to stdout as one line.
func (e environment) printJSON(value any) error {
	text, err := encoded(value)
	if err != nil {
		return err
	}
	if _, err := e.stdout.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// print writes text to stdout, sanitised for terminals.
func (e environment) print(text string) error {
	if _, err := io.WriteString(e.stdout, terminal.Escape(text)); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

func (o *options) show(value any, text string) error {
	if o.json {
		return o.printJSON(value)
	}
	return o.print(text)
}

// encoded returns a value as JSON. People also read it and approve the calls that it shows, so it
// escapes characters that deceive them. For programs the value is the same.
func encoded(value any) (json.RawMessage, error) {
	text, err := jsontext.Encode(value)
	if err != nil {
		return nil, fmt.Errorf("cannot write the output: %w", err)
	}
	return terminal.EscapeJSON(text), nil
}

// printLost prints records that cannot be printed as output. --quiet does not suppress it.
func (e environment) printLost(records []tool.Record) {
	for _, record := range records {
		if text, err := encoded(record); err == nil {
			// Nothing can be done if stderr fails.
			_, _ = fmt.Fprintf(e.stderr, "caisson: record: %s\n", terminal.EscapeLine(string(text)))
		}
	}
}
