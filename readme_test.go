package caisson_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// block is a fenced block of a document: its language and attributes, and its text.
type block struct{ info, text string }

// blocks returns the fenced blocks between two headings.
func blocks(t *testing.T, document, from, to string) []block {
	t.Helper()
	_, rest, found := strings.Cut(document, "\n"+from)
	require.True(t, found, from)
	section, _, found := strings.Cut(rest, "\n"+to)
	require.True(t, found, to)
	var all []block
	for _, match := range regexp.MustCompile("(?ms)^```(.*?)\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		all = append(all, block{match[1], match[2]})
	}
	return all
}

// attribute returns what follows "name=" in a block's info line, or "" without it.
func (b block) attribute(name string) string {
	for _, word := range strings.Fields(b.info) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// TestFirstTool does what the README tells a newcomer to do, in an empty folder, and
// compares what is printed.
func TestFirstTool(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // the README speaks to a POSIX shell
	}
	bin := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/caisson").CombinedOutput()
	require.NoError(t, err, string(out))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	dir, state := t.TempDir(), t.TempDir()
	commands := 0
	for _, b := range blocks(t, string(readme), "## Your first tool", "## What a tool may do") {
		if file := b.attribute("file"); file != "" {
			write(t, filepath.Join(dir, filepath.FromSlash(file)), b)
			continue
		}
		require.True(t, strings.HasPrefix(b.text, "$ "), "a block without file= holds commands")
		for _, step := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			command := exec.CommandContext(t.Context(), "sh", "-c", line)
			command.Dir = dir
			command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "XDG_STATE_HOME="+state)
			got, _ := command.CombinedOutput() // what is printed tells of failures
			assert.Equal(t, strings.TrimSuffix(anyCall(want), "\n"), strings.TrimSuffix(anyCall(string(got)), "\n"), line)
			commands++
		}
	}
	assert.Equal(t, 9, commands)
}

// TestPolicyOfTheREADME checks that the policy which the README shows is one, and grants what
// is said about it.
func TestPolicyOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	shown := blocks(t, string(readme), "## What a tool may do", "## From Go")
	require.Len(t, shown, 1)
	policy, err := manifests.ParsePolicy("caisson.yaml", []byte(shown[0].text))
	require.NoError(t, err)
	assert.Len(t, policy.For("file_read", "wasm-tools/files").Files, 1)
	assert.Empty(t, policy.For("fetch_page", "wasm-tools/web").Files)
	assert.Equal(t, "*.example.com", policy.For("fetch_page", "wasm-tools/web").Network[0].Host)
	assert.Len(t, policy.For("web_search", "wasm-tools/search").Secrets, 1)
	assert.Len(t, policy.For("calculator", "wasm-tools/calculator").Deny, 1)
}

// TestEmbeddingOfTheREADME: the program that the README shows is the one that is tested.
func TestEmbeddingOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	program, err := os.ReadFile(filepath.Join("examples", "embed", "main.go"))
	require.NoError(t, err)
	shown := blocks(t, string(readme), "## From Go", "## The command line")
	for _, line := range strings.Split(strings.TrimSpace(shown[0].text), "\n") {
		code, _, _ := strings.Cut(line, " // ")
		assert.Contains(t, string(program), "\t"+code+"\n")
	}
}

// anyCall returns what was printed with one id for all calls.
func anyCall(printed string) string {
	return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(printed, "ID")
}

// write makes or changes the file of a block: the whole of it, or with the attribute
// replace the one line that holds the given text, or with append its end.
func write(t *testing.T, file string, b block) {
	t.Helper()
	text := b.text
	if marker := b.attribute("replace"); marker != "" {
		old, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(old), marker), "%s holds %q once", file, marker)
		line := regexp.MustCompile("(?m)^.*" + regexp.QuoteMeta(marker) + ".*\n")
		text = line.ReplaceAllLiteralString(string(old), text)
	} else if strings.HasSuffix(b.info, " append") {
		old, err := os.ReadFile(file)
		require.NoError(t, err)
		text = string(old) + text
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// TestLinksLead checks that what the documents link to exists.
func TestLinksLead(t *testing.T) {
	documents, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, pattern := range []string{"*/README.md", "*/*/README.md"} {
		more, err := filepath.Glob(pattern)
		require.NoError(t, err)
		documents = append(documents, more...)
	}
	require.Greater(t, len(documents), 8)
	links := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, document := range documents {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(document), filepath.FromSlash(link[1])))
			assert.NoError(t, err, "%s links to %s", document, link[1])
		}
	}
}
