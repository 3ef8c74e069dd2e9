package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/tool"
)

// TestEmbed builds the unchanged program in another module, and runs a model's calls there with the
// unchanged policy.
func TestEmbed(t *testing.T) {
	root, err := guests.Compile(t.Context())
	require.NoError(t, err)
	outside := t.TempDir()
	for _, folder := range []string{"wasm-tools", "examples/turn/hostile"} {
		copyTools(t, filepath.Join(root, filepath.FromSlash(folder)), filepath.Join(outside, filepath.FromSlash(folder)))
	}
	dir := filepath.Join(outside, "examples", "embed")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "workspaces"), 0o700))
	for _, name := range []string{"main.go", "caisson.yaml"} {
		copyFile(t, name, filepath.Join(dir, name))
	}
	work := newModule(t, root, dir)
	// With these flags, packages are not compiled again that are compiled for tests and for the command.
	program := filepath.Join(dir, "embed.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s", "-o", program, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK="+work, "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	response, err := os.Open(filepath.Join("..", "turn", "response.json"))
	require.NoError(t, err)
	defer response.Close()
	var stderr strings.Builder
	command := exec.CommandContext(t.Context(), program)
	command.Dir, command.Stdin, command.Stderr = dir, response, &stderr
	printed, err := command.Output()
	require.NoError(t, err, stderr.String())
	var records []tool.Record
	require.NoError(t, json.Unmarshal(printed, &records))
	var kinds []tool.Kind
	for _, record := range records {
		kinds = append(kinds, record.Result.Kind)
	}
	assert.Equal(t, []tool.Kind{"", "", "", "", "", tool.Denied, tool.Deadline, tool.Memory}, kinds)
	assert.FileExists(t, filepath.Join(dir, "workspaces", "household", "notes", "budget.md"))
}

// newModule creates a module with the dependencies of Caisson, so that nothing is downloaded, and a workspace of both,
// whose Caisson is this checkout. It returns the workspace's file.
func newModule(t *testing.T, root, dir string) (work string) {
	t.Helper()
	ours, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	head, required, found := strings.Cut(string(ours), "\nrequire ")
	require.True(t, found)
	_, version, found := strings.Cut(head, "\n\n") // "go 1.26.0", with no other line
	require.True(t, found)
	text := "module example.com/embed\n\n" + version +
		"\n\nrequire github.com/caisson-run/caisson v0.0.0\n\nrequire " + required
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600))
	copyFile(t, filepath.Join(root, "go.sum"), filepath.Join(dir, "go.sum"))
	work = filepath.Join(dir, "go.work")
	text = version + "\n\nuse (\n\t.\n\t" + strconv.Quote(filepath.ToSlash(root)) + "\n)\n\n" +
		"replace github.com/caisson-run/caisson v0.0.0 => " + strconv.Quote(filepath.ToSlash(root)) + "\n"
	require.NoError(t, os.WriteFile(work, []byte(text), 0o600))
	return work
}

// copyTools copies manifests and modules.
func copyTools(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".wasm") {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err == nil {
			copyFile(t, path, filepath.Join(to, name))
		}
		return err
	}))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
	require.NoError(t, os.WriteFile(to, content, 0o600))
}

// TestEmbedIsShort: as the README promises, main has at most ten lines and imports nothing internal.
func TestEmbedIsShort(t *testing.T) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "main.go", nil, 0)
	require.NoError(t, err)
	for _, spec := range file.Imports {
		assert.NotContains(t, spec.Path.Value, "internal")
	}
	function, ok := file.Scope.Lookup("main").Decl.(*ast.FuncDecl)
	require.True(t, ok)
	assert.LessOrEqual(t, set.Position(function.End()).Line-set.Position(function.Pos()).Line+1, 10)
}
