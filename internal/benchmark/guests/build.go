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
	target := []string{"GOOS=" + goruntime.GOOS, "GOARCH=" + goruntime.GOARCH}
	return program, build(ctx, source, program, target)
}

// buildCommand compiles a Go program to a WASI command.
func buildCommand(ctx context.Context, name, dir string) ([]byte, error) {
	source, err := sourceOf(name)
	if err != nil {
		return nil, err
	}
	output := filepath.Join(dir, name+".wasm")
	if err := compile.Build(ctx, source, ".", output); err != nil {
		return nil, err
	}
	return readModule(output)
}

// buildReactor compiles a Go package whose exports are called one by one.
func buildReactor(ctx context.Context, name, dir string) ([]byte, error) {
	source, err := sourceOf(name)
	if err != nil {
		return nil, err
	}
	output := filepath.Join(dir, name+".wasm")
	target := []string{"GOOS=wasip1", "GOARCH=wasm"}
	if err := build(ctx, source, output, target, "-buildmode=c-shared"); err != nil {
		return nil, err
	}
	return readModule(output)
}

// sourceOf returns the folder of a Go guest. The build starts there, because one of them
// is a module of its own.
func sourceOf(name string) (folder string, err error) {
	root, err := compile.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "internal", "benchmark", "guests", "go", name), nil
}

// build compiles the package in a folder for the target that the variables name.
func build(ctx context.Context, source, output string, target []string, flags ...string) error {
	arguments := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", output}, flags...)
	command := exec.CommandContext(ctx, "go", append(arguments, ".")...)
	command.Dir = source
	// A test binary built for coverage or races hands its settings down; guests want none.
	command.Env = append(append(command.Environ(), "GOFLAGS=", "GOEXPERIMENT=", "CGO_ENABLED=0"), target...)
	if message, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("guests: compile %s: %w\n%s", source, err, message)
	}
	return nil
}

func readModule(name string) ([]byte, error) {
	module, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("guests: %w", err)
	}
	return module, nil
}
