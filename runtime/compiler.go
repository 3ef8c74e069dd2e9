package runtime

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Compiler says where a [Runtime] compiles modules. The zero value compiles in this process, on two processors. It
// gives up after two minutes, but only between two functions, so modules with a function in a shape that is
// known to take many seconds or hundreds of MiB are refused. Modules written by compilers take about 0.6 µs per byte.
type Compiler struct {
	child engine.Compiler
	err   error
}

// ChildCompiler returns a compiler that compiles each module in a child process, with limits
// on time and memory and an empty environment. The child is this program, started again, so
// main must call ChildCompiler first: in the child it compiles the module and does not return.
//
//	func main() {
//		compiler := runtime.ChildCompiler(ctx)
//		rt, err := runtime.New(ctx, runtime.Options{Compiler: compiler})
//
// If the path of this program is unknown, New fails.
func ChildCompiler(ctx context.Context) Compiler {
	if code, serving := engine.ServeCompiler(ctx, os.LookupEnv, os.Stdin, os.Stderr); serving {
		os.Exit(code)
	}
	executable, err := os.Executable()
	if err != nil {
		err = fmt.Errorf("find this program for the compiler: %w", err)
	}
	return Compiler{child: engine.Compiler{Executable: executable}, err: err}
}

func parseDigests(texts []string) ([]engine.Digest, error) {
	var read []engine.Digest
	for _, text := range texts {
		digest, err := hex.DecodeString(text)
		if err != nil || len(digest) != len(engine.Digest{}) {
			return nil, fmt.Errorf("the trusted module %q is not a SHA-256 digest of 64 hex digits", text)
		}
		read = append(read, engine.Digest(digest))
	}
	return read, nil
}

// DefaultCacheDir returns the directory for compiled code below the user's cache directory.
// It does not create the directory.
func DefaultCacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no default folder for compiled code: %w", err)
	}
	return filepath.Join(base, "caisson", "compiled"), nil
}
