package benchmark

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"github.com/caisson-run/caisson/internal/benchmark/guests/go/handler"
)

// native calls the tool's Go code in this process. It is its own session and caller.
type native struct{ stateless }

func (n native) open(context.Context, string) (session, error) { return n, nil }
func (n native) caller(context.Context) (caller, error)        { return n, nil }

func (native) call(_ context.Context, in input) ([]byte, error) {
	var tool handler.Handler
	return tool.Handle(in.expected.Input)
}

// process starts a native program for each call. It is its own session and caller.
type process struct {
	stateless
	program string
}

func (p process) open(context.Context, string) (session, error) { return p, nil }
func (p process) caller(context.Context) (caller, error)        { return p, nil }

func (p process) call(ctx context.Context, in input) ([]byte, error) {
	command := exec.CommandContext(ctx, p.program)
	command.Stdin = bytes.NewReader(in.expected.Input)
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmark: native process: %w", err)
	}
	return output, nil
}
