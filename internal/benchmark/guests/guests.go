// Package guests holds the guests that the benchmarks run: compute kernels and one small JSON tool, each in C, Rust and
// Go, and the tool as a plug-in in AssemblyScript. All modules but those in Go are committed and embedded; the Go ones
// are compiled on demand by the Go toolchain, from inside a checkout.
package guests

import (
	"context"
	"embed"
	"errors"
	"fmt"
)

// Language is the programming language of a guest.
type Language string

// The languages. GoWarm is Go whose command answers a sample before it reads its
// arguments, for snapshots that are taken at the first read.
const (
	C      Language = "c"
	Rust   Language = "rust"
	Go     Language = "go"
	GoWarm Language = "go-warm"
	// AssemblyScript has only a plug-in.
	AssemblyScript Language = "assemblyscript"
)

// ErrNoGuest means that the language has no guest of the wanted form.
var ErrNoGuest = errors.New("guests: no such guest")

//go:embed c/kernels.wasm c/kernelcommand.wasm c/untuned.wasm c/untunedcommand.wasm
//go:embed c/recursive.wasm c/recursivecommand.wasm c/tool.wasm c/plugin.wasm
//go:embed rust/kernels.wasm rust/kernelcommand.wasm rust/untuned.wasm rust/untunedcommand.wasm
//go:embed rust/recursive.wasm rust/recursivecommand.wasm rust/tool.wasm rust/plugin.wasm
//go:embed assemblyscript/plugin.wasm
var committed embed.FS

// Kernels returns the language's module of compute kernels (C, Rust, Go), which exports
// each of [AllKernels] as a function NAME(size i32) -> i64. A module that exports
// _initialize wants it called first; Go's imports WASI, the others import nothing.
//
// Kernels, KernelCommand, Untuned, UntunedCommand, Recursive, RecursiveCommand, Command and Plugin write a Go module
// below dir and read it from there; what other languages give is the same bytes each time and needs no dir. Calls at
// the same time need different folders.
func Kernels(ctx context.Context, language Language, dir string) ([]byte, error) {
	if language == Go {
		return buildReactor(ctx, "reactor", dir)
	}
	return embedded(language, "kernels")
}

// KernelCommand returns the kernels as a WASI command (C, Rust, Go): NAME SIZE as
// arguments, and on standard output the checksum in 16 hexadecimal digits, a space, and the
// nanoseconds that the kernel took by the guest's monotonic clock.
func KernelCommand(ctx context.Context, language Language, dir string) ([]byte, error) {
	if language == Go {
		return buildCommand(ctx, "kernelcommand", dir)
	}
	return embedded(language, "kernelcommand")
}

// Untuned is [Kernels] of [UntunedKernels]. They are in a separate module, so that the module of those that metering
// was tuned on stays the same, byte for byte.
func Untuned(ctx context.Context, language Language, dir string) ([]byte, error) {
	if language == Go {
		return buildReactor(ctx, "untunedreactor", dir)
	}
	return embedded(language, "untuned")
}

// UntunedCommand is [KernelCommand] of [UntunedKernels].
func UntunedCommand(ctx context.Context, language Language, dir string) ([]byte, error) {
	if language == Go {
		return buildCommand(ctx, "untunedcommand", dir)
	}
	return embedded(language, "untunedcommand")
}

// Recursive is [Kernels] of [RecursiveKernels].
func Recursive(ctx context.Context, language Language, dir string) ([]byte, error) {
	if language == Go {
		return buildReactor(ctx, "recursivereactor", dir)
	}
	return embedded(language, "recursive")
}

// RecursiveCommand is [KernelCommand] of [RecursiveKernels].
func RecursiveCommand(ctx context.Context, language Language, dir string) ([]byte, error) {
	if language == Go {
		return buildCommand(ctx, "recursivecommand", dir)
	}
	return embedded(language, "recursivecommand")
}

// Command returns the JSON tool as a WASI command (any language but AssemblyScript): it reads arguments from
// standard input, as [Call] makes them, and writes the answer to standard output.
func Command(ctx context.Context, language Language, dir string) ([]byte, error) {
	switch language {
	case Go:
		return buildCommand(ctx, "tool", dir)
	case GoWarm:
		return buildCommand(ctx, "warmtool", dir)
	}
	return embedded(language, "tool")
}

// Plugin returns the JSON tool as an Extism plug-in (C, Rust, Go, AssemblyScript) that exports call. Go's
// is linked with Extism's PDK, a module that the toolchain downloads when it is missing.
func Plugin(ctx context.Context, language Language, dir string) ([]byte, error) {
	if language == Go {
		return buildReactor(ctx, "plugin", dir)
	}
	return embedded(language, "plugin")
}

func embedded(language Language, form string) ([]byte, error) {
	if language != C && language != Rust && (language != AssemblyScript || form != "plugin") {
		return nil, fmt.Errorf("%w: %s in %q", ErrNoGuest, form, language)
	}
	module, err := committed.ReadFile(string(language) + "/" + form + ".wasm")
	if err != nil {
		return nil, fmt.Errorf("guests: %w", err)
	}
	return module, nil
}
