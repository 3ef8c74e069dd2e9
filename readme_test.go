package caisson_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/manifests"
)

// readme returns the fenced blocks of README.md between two headings.
func readme(t *testing.T, from, to string) []block {
	t.Helper()
	document := noerr.Get(os.ReadFile("README.md"))(t)
	_, rest, found := strings.Cut(string(document), "\n## "+from+"\n")
	require.True(t, found, from)
	section, _, found := strings.Cut(rest, "\n## "+to+"\n")
	require.True(t, found, to)
	return blocksOf(section)
}

// TestREADME follows the README's instructions, first in this checkout, then in an empty folder.
func TestREADME(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // the README's commands need a POSIX shell
	}
	assert.Equal(t, 2, follow(t, ".", readme(t, "Install", "Terms")))
	assert.Equal(t, 9, follow(t, t.TempDir(), readme(t, "Your first tool, in five minutes", "What a tool may do"), withCaisson(t)))
}

// TestFirstScreenOfTheREADME: the two commands that a newcomer is told to run exist. CI runs the second one, and this
// test the first one, which names its long steps before they begin.
func TestFirstScreenOfTheREADME(t *testing.T) {
	document := noerr.Get(os.ReadFile("README.md"))(t)
	lines := strings.SplitN(string(document), "\n", 26)
	shown := blocksOf(strings.Join(lines[:25], "\n") + "\n")
	require.Len(t, shown, 1)
	var commands []string
	for line := range strings.Lines(shown[0].text) {
		command, _, _ := strings.Cut(line, "#")
		commands = append(commands, strings.TrimSpace(command))
	}
	require.Equal(t, []string{"make demo", "make test"}, commands)
	ci := noerr.Get(os.ReadFile(filepath.Join(".ci", "run")))(t)
	assert.Contains(t, string(ci), "\nmake test\n")
	if goruntime.GOOS == "windows" {
		return // the Makefile needs a POSIX shell
	}
	demo := exec.CommandContext(t.Context(), "make", "demo")
	demo.Env = append(os.Environ(), "MAKEFLAGS=", "GOFLAGS=-trimpath -ldflags=-s") // which save time when it is linked
	var out, progress strings.Builder
	demo.Stdout, demo.Stderr = &out, &progress
	require.NoError(t, demo.Run(), "%s%s", &out, &progress)
	assert.Contains(t, out.String(), "5 useful results, 3 attacks contained")
	for _, step := range []string{"go build -v ", "go run -v -trimpath ./internal/guests/compile -v\n", "go run -v -trimpath ./examples/turn\n"} {
		assert.Contains(t, out.String(), step)
	}
	assert.Contains(t, progress.String(), "turn: compiling 6 tools to machine code")
}

// TestPolicyOfTheREADME: the README's policy is valid and grants what the README says.
func TestPolicyOfTheREADME(t *testing.T) {
	shown := readme(t, "What a tool may do", "From any agent")
	require.Len(t, shown, 1)
	policy := noerr.Get(manifests.ParsePolicy("caisson.yaml", []byte(shown[0].text)))(t)
	assert.Len(t, policy.For("file_read", "wasm-tools/files").Files, 1)
	assert.Empty(t, policy.For("fetch_page", "wasm-tools/web").Files)
	assert.Equal(t, "*.example.com", policy.For("fetch_page", "wasm-tools/web").Network[0].Host)
	assert.Len(t, policy.For("web_search", "wasm-tools/search").Secrets, 1)
	assert.Len(t, policy.For("calculator", "wasm-tools/calculator").Deny, 1)
}

// command returns the folder with the command. The first test that needs it builds it as "make build" does and where,
// so that it is linked only if something has changed.
var command = sync.OnceValues(func() (dir string, err error) {
	if dir, err = filepath.Abs("bin"); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", filepath.Join(dir, "caisson"), "./cmd/caisson")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// withCaisson returns the variable PATH with the command's folder in front.
func withCaisson(t *testing.T) string {
	t.Helper()
	dir := noerr.Get(command())(t)
	return "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// TestAssistantOfTheREADME: the configuration of a desktop assistant starts a server that lists the tools.
func TestAssistantOfTheREADME(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // the README's commands need a POSIX shell
	}
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator"))(t)
	bin := noerr.Get(command())(t)
	dir := t.TempDir()
	shown := readme(t, "From any agent", "From Go")
	require.Len(t, shown, 3)

	var configuration struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	require.NoError(t, json.Unmarshal([]byte(shown[0].text), &configuration))
	server := configuration.Servers["caisson"]
	policy := filepath.Join(dir, "caisson.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("schema: caisson-config/v1\ntools: [{path: "+filepath.Join(root, "wasm-tools", "calculator")+"}]\n"), 0o600))
	for i, argument := range server.Args {
		if argument == "/home/me/caisson.yaml" {
			server.Args[i] = policy
		}
	}
	mcp := exec.CommandContext(t.Context(), filepath.Join(bin, server.Command), server.Args...)
	mcp.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	mcp.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	said := noerr.Get(mcp.Output())(t)
	assert.Contains(t, string(said), `"name":"calculator"`)
}

// TestEmbeddingOfTheREADME: the program in the README is the tested one.
func TestEmbeddingOfTheREADME(t *testing.T) {
	program := noerr.Get(os.ReadFile(filepath.Join("examples", "embed", "main.go")))(t)
	shown := readme(t, "From Go", "Documentation")
	require.Len(t, shown, 1)
	for line := range strings.Lines(shown[0].text) {
		code, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " // ")
		assert.Contains(t, string(program), "\t"+code+"\n")
	}
}

// TestLinksLead: the files, folders and headings that documents link to exist.
func TestLinksLead(t *testing.T) {
	var documents []string
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md", "*/*/*/*.md"} {
		found := noerr.Get(filepath.Glob(pattern))(t)
		documents = append(documents, found...)
	}
	require.Greater(t, len(documents), 20)
	links := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, document := range documents {
		text := noerr.Get(os.ReadFile(document))(t)
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			target := document
			if link[1] != "" {
				target = filepath.Join(filepath.Dir(document), filepath.FromSlash(link[1]))
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, "%s links to %s", document, link[1])
			if link[2] != "" && err == nil {
				assert.Contains(t, anchors(t, target), link[2], "%s links to it in %s", document, target)
			}
		}
	}
}

// TestFeaturesHaveTests: each feature in docs/features.md names tests, and those exist.
func TestFeaturesHaveTests(t *testing.T) {
	tests := map[string]bool{} // "package: Name"
	for _, s := range sources(t) {
		for _, declaration := range s.syntax.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && s.test {
				tests[s.folder()+": "+function.Name.Name] = true
			}
		}
	}
	page := noerr.Get(os.ReadFile(filepath.Join("docs", "features.md")))(t)
	name := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	features := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "| feature" || strings.HasPrefix(line, "| **") {
			continue
		}
		features++
		if !assert.Len(t, cells, 3, line) {
			continue
		}
		found := 0
		for part := range strings.SplitSeq(cells[2], "; ") {
			folder, names, _ := strings.Cut(part, ": ")
			for _, match := range name.FindAllStringSubmatch(names, -1) {
				found++
				assert.True(t, tests[folder+": "+match[1]], "%s has no %s", folder, match[1])
			}
		}
		assert.Positive(t, found, "no test in %s", line)
	}
	assert.Greater(t, features, 30)
}

// TestAttacksHaveTests: the tests and guards that docs/attacks.md names exist.
func TestAttacksHaveTests(t *testing.T) {
	tests := map[string]bool{}
	for _, s := range sources(t) {
		for _, declaration := range s.syntax.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && s.test {
				tests[function.Name.Name] = true
			}
		}
	}
	page := string(noerr.Get(os.ReadFile(filepath.Join("docs", "attacks.md")))(t))
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)[`/]").FindAllStringSubmatch(page, -1)
	assert.Greater(t, len(named), 300)
	for _, match := range named {
		assert.True(t, tests[match[1]], "there is no %s", match[1])
	}
	guards := string(noerr.Get(os.ReadFile("guards_test.go"))(t))
	for line := range strings.Lines(page) {
		if !strings.Contains(line, "guard") {
			continue
		}
		for _, match := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(line, -1) {
			assert.Contains(t, guards, `"`+match[1]+`"`, line)
		}
	}
}

// anchors returns the anchors of a document's headings.
func anchors(t *testing.T, document string) (all []string) {
	t.Helper()
	text := noerr.Get(os.ReadFile(document))(t)
	dropped := regexp.MustCompile(`[^\w -]`) // left out of anchors
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return all
}
