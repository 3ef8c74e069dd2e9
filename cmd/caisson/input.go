package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// maxInput is how many bytes are read from a file or from stdin.
const maxInput = 64 << 20

// readInput reads a file, or stdin for "-". A read from a terminal ends with ctx, too.
func (e environment) readInput(ctx context.Context, name string) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, failed(exitUsage, err.Error())
		}
		defer func() { _ = file.Close() }()
		return readAll(ctx, name, file)
	}
	return readAll(ctx, "stdin", e.stdin)
}

func readAll(ctx context.Context, name string, r io.Reader) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	results := make(chan result, 1)
	go func() {
		content, err := io.ReadAll(io.LimitReader(r, maxInput+1))
		results <- result{content, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case read := <-results:
		if read.err != nil {
			return nil, failed(exitUsage, fmt.Sprintf("cannot read %s: %v", name, read.err))
		}
		if len(read.content) > maxInput {
			return nil, failed(exitUsage, fmt.Sprintf("%s has more than %d bytes", name, maxInput))
		}
		return read.content, nil
	}
}
