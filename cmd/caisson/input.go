package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

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

// readAll is readInput without a context. The file may be a pipe, as passed by shells for <(…), which
// blocks until it is opened.
func (e environment) readAll(name string) ([]byte, error) {
	from, called := e.stdin, "stdin"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, failed(exitUsage, fmt.Sprintf("cannot read %s: %s", name, reasonOf(err)), "name a file that can be read, or - for standard input")
		}
		defer file.Close()
		from, called = file, name
	}
	content, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err != nil {
		return nil, failed(exitUsage, fmt.Sprintf("cannot read %s: %s", called, reasonOf(err)), "name a file that can be read, or - for standard input")
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

// show prints a value with --json, and otherwise its text for people.
func (o *options) show(value any, text string) error {
	if o.json {
		return o.printJSON(value)
	}
	return o.print(text)
}

// encoded returns a value as JSON. People also read it and approve what they see in it, so it
// escapes characters that deceive them. For programs the value is the same.
func encoded(value any) (json.RawMessage, error) {
	text, err := marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot write the output: %w", err)
	}
	return visible(text), nil
}

// marshal returns a value as JSON, without escapes for HTML.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// visible returns JSON in which all characters for which [tool.Deceives] is true are escaped,
// including those that shape honest text. They occur only in strings, where an escape means the
// same.
func visible(text []byte) []byte {
	deceives := func(r rune) bool { return r >= 0x7f && tool.Deceives(r) } // JSON escapes lower ones, or they are white space
	if !bytes.ContainsFunc(text, deceives) {
		return text
	}
	var escaped []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !deceives(r):
			escaped = append(escaped, text[:size]...)
		case r <= 0xffff:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		}
		text = text[size:]
	}
	return escaped
}

// list returns the slice, or an empty one for nil, so that JSON has [] instead of null.
func list[T any](elements []T) []T {
	if elements == nil {
		return []T{}
	}
	return elements
}
