//go:build languages

package caisson_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// languages are the pages in docs/languages: each with a command that succeeds if what the page needs
// is there, and how to get it.
var languages = []struct{ name, probe, get string }{
	{"assemblyscript", "npm --version", "npm, which comes with Node.js; Debian: apt-get install npm"},
	{"c", "echo 'int main(void) {}' | clang --target=wasm32-wasi -x c - -o main.wasm", "clang with wasi-libc; Debian: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32"},
	{"javascript", "cargo --version && python3 -m pip --version", "cargo, and Python with pip; Debian: apt-get install cargo python3-pip"},
	{"python", "npm --version && python3 -m pip --version", "npm, which comes with Node.js, and Python with pip; Debian: apt-get install npm python3-pip"},
	{"rust", `cargo --version && test -e "$(rustc --print target-libdir --target wasm32-wasip1)"`, "Rust for wasm32-wasip1; with rustup: rustup target add wasm32-wasip1"},
	{"zig", "python3 -m venv python", "Python with venv; Debian: apt-get install python3-venv"},
}

// TestLanguages follows the pages, each in an empty folder.
func TestLanguages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("docs", "languages", "*.md"))
	require.NoError(t, err)
	require.Len(t, pages, 1+len(languages), "and README.md")
	path := withCaisson(t)
	for _, language := range languages {
		t.Run(language.name, func(t *testing.T) {
			probe := exec.CommandContext(t.Context(), "sh", "-c", language.probe)
			probe.Dir = t.TempDir()
			message, err := probe.CombinedOutput()
			require.NoError(t, err, "needs %s: %s", language.get, message)
			require.NotZero(t, follow(t, t.TempDir(), blocksIn(t, filepath.Join("docs", "languages", language.name+".md")), path))
		})
	}
}
