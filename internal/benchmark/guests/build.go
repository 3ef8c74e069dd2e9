package guests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"

	compile "github.com/caisson-run/caisson/internal/guests"
)

// NativeCommand compiles the Go tool for the machine that runs, below dir, and returns
// the program's path.
func NativeCommand(ctx context.Context, dir string) (program string, err error) {
	source, err := sourceOf("tool")
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "tool")
	if goruntime.GOOS == "windows" {
		program += ".exe"
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program,
		".")
	command.Dir = source
	// A test binary built for coverage or races hands its settings down; the tool wants none.
	command.Env = append(command.Environ(), "GOFLAGS=", "GOEXPERIMENT=", "CGO_ENABLED=0", "GOOS="+goruntime.GOOS,
		"GOARCH="+goruntime.GOARCH)
	if message, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("guests: compile %s: %w\n%s", source, err, message)
	}
	return program, nil
}

// buildCommand compiles a Go program to a WASI command.
func buildCommand(ctx context.Context, name, dir string) ([]byte, error) {
	return buildModule(ctx, name, dir)
}

// buildReactor compiles a Go package whose exports are called one by one.
func buildReactor(ctx context.Context, name, dir string) ([]byte, error) {
	return buildModule(ctx, name, dir, "-buildmode=c-shared")
}

func buildModule(ctx context.Context, name, dir string, flags ...string) ([]byte, error) {
	source, err := sourceOf(name)
	if err != nil {
		return nil, err
	}
	output := filepath.Join(dir, name+".wasm")
	if err := compile.Build(ctx, source, ".", output, flags...); err != nil {
		return nil, err
	}
	module, err := os.ReadFile(output)
	if err != nil {
		return nil, fmt.Errorf("guests: %w", err)
	}
	return module, nil
}

// sourceOf returns the folder of a Go guest. The build starts there, because one of them is a separate Go module.
func sourceOf(name string) (folder string, err error) {
	root, err := compile.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "internal", "benchmark", "guests", "go", name), nil
}
