package runtime

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Compiler says where a [Runtime] compiles modules. The zero value compiles in this
// process, where nothing can interrupt a compilation: modules are refused for which its
// time would grow faster than their size. It takes some 0.6 µs for a byte of what
// compilers write, and 7 µs for the worst that is known, beside a second.
type Compiler struct {
	child engine.Compiler
	err   error
}

// ChildCompiler returns a compiler that starts this program again for each module, as a
// child process with bounds on time and memory and an empty environment. It must be the
// first thing that main does: in the child it compiles, and does not return.
//
//	func main() {
//		compiler := runtime.ChildCompiler(ctx)
//		rt, err := runtime.New(ctx, runtime.Options{Compiler: compiler})
//
// If this program cannot be found, New says so.
func ChildCompiler(ctx context.Context) Compiler {
	if code, serving := engine.ServeCompiler(ctx, os.LookupEnv, os.Stdin, os.Stderr); serving {
		os.Exit(code)
	}
	executable, err := os.Executable()
	if err != nil {
		err = fmt.Errorf("runtime: no program for the compiler: %w", err)
	}
	return Compiler{child: engine.Compiler{Executable: executable}, err: err}
}

// digests reads SHA-256 digests.
func digests(texts []string) ([]engine.Digest, error) {
	var read []engine.Digest
	for _, text := range texts {
		digest, err := hex.DecodeString(text)
		if err != nil || len(digest) != len(engine.Digest{}) {
			return nil, fmt.Errorf("runtime: the trusted module %q is no SHA-256 of 64 hex digits", text)
		}
		read = append(read, engine.Digest(digest))
	}
	return read, nil
}

// DefaultCacheDir returns the folder for compiled code below the user's cache folder.
// It does not create it.
func DefaultCacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("runtime: no folder for compiled code: %w", err)
	}
	return filepath.Join(base, "caisson", "compiled"), nil
}
