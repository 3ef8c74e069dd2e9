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

// readme returns the fenced blocks of README.md between two headings.
func readme(t *testing.T, from, to string) []block {
	t.Helper()
	document, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(document), "\n## "+from+"\n")
	require.True(t, found, from)
	section, _, found := strings.Cut(rest, "\n## "+to+"\n")
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

// follow follows blocks in a folder: it writes their files, runs their commands and compares the output.
// It returns the number of commands.
func follow(t *testing.T, dir string, blocks []block, environment ...string) (commands int) {
	t.Helper()
	for _, b := range blocks {
		if file := b.attribute("file"); file != "" {
			write(t, filepath.Join(dir, filepath.FromSlash(file)), b)
			continue
		}
		require.True(t, strings.HasPrefix(b.text, "$ "), "a block without file= holds commands")
		for _, step := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			command := exec.CommandContext(t.Context(), "sh", "-c", line)
			command.Dir = dir
			command.Env = append(os.Environ(), append(environment, "XDG_STATE_HOME="+t.TempDir(), "MAKEFLAGS=")...)
			got, _ := command.CombinedOutput() // failures show in the output
			assert.Equal(t, strings.TrimSuffix(anyCall(want), "\n"), strings.TrimSuffix(anyCall(string(got)), "\n"), line)
			commands++
		}
	}
	return commands
}

// TestREADME follows the README's instructions, first in this checkout, then in an empty folder.
func TestREADME(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // the README's commands need a POSIX shell
	}
	assert.Equal(t, 2, follow(t, ".", readme(t, "Install", "Five words")))
	bin, err := filepath.Abs("bin")
	require.NoError(t, err)
	path := "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")
	assert.Equal(t, 9, follow(t, t.TempDir(), readme(t, "Your first tool, in five minutes", "What a tool may do"), path))
}

// TestPolicyOfTheREADME: the README's policy is valid and grants what the README says.
func TestPolicyOfTheREADME(t *testing.T) {
	shown := readme(t, "What a tool may do", "From Go")
	require.Len(t, shown, 1)
	policy, err := manifests.ParsePolicy("caisson.yaml", []byte(shown[0].text))
	require.NoError(t, err)
	assert.Len(t, policy.For("file_read", "wasm-tools/files").Files, 1)
	assert.Empty(t, policy.For("fetch_page", "wasm-tools/web").Files)
	assert.Equal(t, "*.example.com", policy.For("fetch_page", "wasm-tools/web").Network[0].Host)
	assert.Len(t, policy.For("web_search", "wasm-tools/search").Secrets, 1)
	assert.Len(t, policy.For("calculator", "wasm-tools/calculator").Deny, 1)
}

// TestEmbeddingOfTheREADME: the program in the README is the tested one.
func TestEmbeddingOfTheREADME(t *testing.T) {
	program, err := os.ReadFile(filepath.Join("examples", "embed", "main.go"))
	require.NoError(t, err)
	shown := readme(t, "From Go", "Documentation")
	require.Len(t, shown, 1)
	for line := range strings.Lines(shown[0].text) {
		code, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " // ")
		assert.Contains(t, string(program), "\t"+code+"\n")
	}
}

// anyCall replaces the ids of calls.
func anyCall(printed string) string {
	return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(printed, "ID")
}

// write writes the file of a block. With the attribute replace, it replaces the one line with the given
// text, and with append, it adds to the end.
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

// TestLinksLead: the files, folders and headings that documents link to exist.
func TestLinksLead(t *testing.T) {
	var documents []string
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md", "*/*/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		documents = append(documents, found...)
	}
	require.Greater(t, len(documents), 20)
	links := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, document := range documents {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
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

// anchors returns the anchors of a document's headings.
func anchors(t *testing.T, document string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	dropped := regexp.MustCompile(`[^\w -]`) // left out of anchors
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return all
}
