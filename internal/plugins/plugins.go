// Package plugins holds one Extism plug-in in several languages. Its tests run them, and those that come
// with github.com/extism/go-sdk, on Caisson and on that library, and compare every answer.
//
// The modules in C, Rust and AssemblyScript are committed and embedded. The one in Go is compiled on
// demand by the Go toolchain, from inside a checkout.
package plugins

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-run/caisson/internal/guests"
)

// Language is the programming language of a plug-in, with the target if there are several.
type Language string

// The languages.
const (
	C              Language = "c"
	Rust           Language = "rust"
	RustWASI       Language = "rust-wasi" // the same source for wasm32-wasip1
	Go             Language = "go"
	AssemblyScript Language = "assemblyscript"
)

// ErrNoPlugin means that the package has no plug-in in this language.
var ErrNoPlugin = errors.New("plugins: no such plug-in")

//go:embed c/plugin.wasm rust/plugin.wasm rust/wasi.wasm assemblyscript/plugin.wasm
var committed embed.FS

// Module returns the language's plug-in. Go's is written below dir, which the others do not need; calls at
// the same time need different folders. It is linked with Extism's PDK, a module that the toolchain
// downloads if it is missing.
func Module(ctx context.Context, language Language, dir string) ([]byte, error) {
	name, known := map[Language]string{
		C: "c/plugin.wasm", Rust: "rust/plugin.wasm", RustWASI: "rust/wasi.wasm",
		AssemblyScript: "assemblyscript/plugin.wasm",
	}[language]
	switch {
	case known:
		return committed.ReadFile(name)
	case language != Go:
		return nil, fmt.Errorf("%w: %q", ErrNoPlugin, language)
	}
	root, err := guests.Root()
	if err != nil {
		return nil, err
	}
	output := filepath.Join(dir, "plugin.wasm")
	if err := guests.Build(ctx, filepath.Join(root, "internal", "plugins", "go"), ".", output,
		"-buildmode=c-shared"); err != nil {
		return nil, err
	}
	module, err := os.ReadFile(output)
	if err != nil {
		return nil, fmt.Errorf("plugins: %w", err)
	}
	return module, nil
}
