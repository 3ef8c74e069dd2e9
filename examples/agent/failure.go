package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The exit codes.
const (
	exitSuccess     = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLimit       = 4
	exitWaiting     = 5
	exitInterrupted = 130
)

// failure is an error with an exit code of its own, and with what can be done about it.
type failure struct {
	code  int
	text  string
	hints []string
	err   error // the cause, or nil
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }

func failed(code int, text string, hints ...string) *failure {
	return &failure{code: code, text: text, hints: hints}
}

// hinted adds what can be done to an error.
func hinted(err error, hint string) error {
	var known *failure
	if errors.As(err, &known) {
		return &failure{known.code, known.text, append(slices.Clone(known.hints), hint), err}
	}
	code := exitFailed
	if errors.Is(err, context.Canceled) {
		code = exitInterrupted
	}
	return &failure{code, err.Error(), []string{hint}, err}
}

// joined adds what went wrong afterwards to what went wrong first, which alone says how the
// program ends.
func joined(first, after error) error {
	if first == nil {
		return after
	}
	return first
}

// report prints what the program ended with and returns the exit code.
func report(ctx context.Context, w io.Writer, err error) int {
	var known *failure
	switch {
	case err == nil:
		return exitSuccess
	case errors.As(err, &known):
	case ctx.Err() != nil:
		known = failed(exitInterrupted, "interrupted")
	default:
		known = failed(exitFailed, err.Error())
	}
	known.print(w)
	return known.code
}

// print writes the failure. Nothing can be done about a writer that fails.
func (f *failure) print(w io.Writer) {
	for line := range strings.Lines(f.text) {
		_, _ = fmt.Fprintln(w, "agent: error:", visible(strings.TrimSuffix(line, "\n")))
	}
	for _, hint := range f.hints {
		_, _ = fmt.Fprintln(w, "agent: hint:", visible(hint))
	}
}
