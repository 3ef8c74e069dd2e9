package caisson_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// Documents are followed as a reader would follow them: their fenced blocks are files and commands.

// block is a fenced block of a document: its language and attributes, and its text.
type block struct{ info, text string }

// blocksOf returns the fenced blocks of a document.
func blocksOf(document string) (all []block) {
	for _, match := range regexp.MustCompile("(?ms)^```(.*?)\n(.*?)^```$").FindAllStringSubmatch(document, -1) {
		all = append(all, block{match[1], match[2]})
	}
	return all
}

// blocksIn returns the fenced blocks in a file.
func blocksIn(t *testing.T, file string) []block {
	t.Helper()
	document := noerr.Get(os.ReadFile(file))(t)
	return blocksOf(string(document))
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
			// The flags change nothing that is shown. They leave out what takes long to link, and the names of
			// temporary folders, so that guests are the same each time and compiled once.
			command.Env = append(os.Environ(), append(environment, "XDG_STATE_HOME="+t.TempDir(), "MAKEFLAGS=", "GOFLAGS=-trimpath -ldflags=-s")...)
			got, _ := command.CombinedOutput() // failures show in the output
			assert.Equal(t, strings.TrimSuffix(anyCall(want), "\n"), strings.TrimSuffix(anyCall(string(got)), "\n"), line)
			commands++
		}
	}
	return commands
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
		old := noerr.Get(os.ReadFile(file))(t)
		require.Equal(t, 1, strings.Count(string(old), marker), "%s holds %q once", file, marker)
		line := regexp.MustCompile("(?m)^.*" + regexp.QuoteMeta(marker) + ".*\n")
		text = line.ReplaceAllLiteralString(string(old), text)
	} else if strings.HasSuffix(b.info, " append") {
		old := noerr.Get(os.ReadFile(file))(t)
		text = string(old) + text
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}
