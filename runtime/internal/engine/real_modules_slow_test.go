//go:build slow && !race

package engine

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
)

// ownProgram is one of this repository's guests, in Go, with its launches.
type ownProgram struct {
	folder   string
	launches []launch
}

func ownPrograms() []ownProgram {
	ask := func(input string, arguments ...string) launch { return launch{arguments, input} }
	return []ownProgram{
		{"wasm-tools/calculator", []launch{
			ask(`{"expression": "2*(3+4)^2 - sqrt(2)"}`, "calculator"),
			ask(`{"expression": "sin(1)^2 + cos(1)^2"}`, "calculator"),
			ask(`{"expression": "1/0"}`, "calculator"),
			ask(`{"expression": "((((((("}`, "calculator"),
			ask(`not JSON`, "calculator"),
		}},
		{"wasm-tools/files", []launch{
			ask(`{"path": "notes.txt"}`, "files", "read"),
			ask(`{"path": "../secret"}`, "files", "read"),
			ask(`{"path": ".", "recursive": true}`, "files", "list"),
			ask(`{"path": "docs/deep.md"}`, "files", "exists"),
			ask(`{"path": "new.txt", "content": "text"}`, "files", "write"),
			ask(`{"path": "a/b/c"}`, "files", "mkdir"),
			ask(`{"path": "notes.txt"}`, "files", "delete"),
			ask(``, "files"),
		}},
		{"internal/guests/probe", []launch{
			ask(`{"do": "echo"}`, "probe", "a", "b c"),
			ask(`{"do": "print", "text": "line\n", "times": 1000}`, "probe"),
			ask(`{"do": "log", "text": "line\n", "times": 1000}`, "probe"),
			ask(`{"do": "exit", "text": "bye", "code": 7}`, "probe"),
			ask(`{"do": "panic", "text": "help"}`, "probe"),
			ask(`{"do": "sleep", "millis": 5}`, "probe"),
			ask(`{"do": "allocate", "mib": 48}`, "probe"),
			ask(strings.Repeat("moved in pieces ", 1<<16), "probe"),
			ask(`{"do": "nothing"}`, "probe"),
		}},
	}
}

func TestProgramsOfThisRepositoryBehaveTheSame(t *testing.T) {
	t.Parallel()
	var folders []string
	for _, p := range ownPrograms() {
		folders = append(folders, p.folder)
	}
	root, err := guests.Compile(t.Context(), folders...)
	require.NoError(t, err)
	var all []candidate
	for _, p := range ownPrograms() {
		source := read(t, filepath.Join(root, filepath.FromSlash(p.folder), filepath.Base(p.folder)+".wasm"))
		all = append(all, candidate{name: p.folder, source: source, launches: p.launches, fuel: 1 << 40})
	}
	assert.Equal(t, 3, compareAll(t, all).modules)
}
