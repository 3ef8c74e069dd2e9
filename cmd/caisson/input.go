package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxInput is how many bytes are read from a file or from stdin.
const maxInput = 64 << 20

// readInput reads a file, or stdin for "-". It ends with ctx, whatever is waited for.
func (e environment) readInput(ctx context.Context, name string) ([]byte, error) {
	if name != "-" {
		return readAll(ctx, name, func() ([]byte, error) { return readNamed(name) })
	}
	return readAll(ctx, "stdin", func() ([]byte, error) { return io.ReadAll(io.LimitReader(e.stdin, maxInput+1)) })
}

// readNamed also reads a pipe, as shells hand in for <(…). It may wait for that to be opened.
func readNamed(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxInput+1))
	return content, errors.Join(err, file.Close())
}

func readAll(ctx context.Context, name string, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	results := make(chan result, 1)
	go func() {
		content, err := read()
		results <- result{content, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case read := <-results:
		if opening := (*fs.PathError)(nil); errors.As(read.err, &opening) && opening.Op == "open" {
			return nil, failed(exitUsage, read.err.Error())
		}
		if read.err != nil {
			return nil, failed(exitUsage, fmt.Sprintf("cannot read %s: %v", name, read.err))
		}
		if len(read.content) > maxInput {
			return nil, failed(exitUsage, fmt.Sprintf("%s has more than %d bytes", name, maxInput))
		}
		return read.content, nil
	}
}
