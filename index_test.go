package caisson_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// outcome describes the result of opening tools: the tools by name, with the content of their
// manifests, and the rejected names.
func outcome(t *testing.T, options caisson.Options) string {
	t.Helper()
	options.NoCache = true
	host, err := caisson.Open(t.Context(), options)
	if err != nil {
		return err.Error()
	}
	defer func() { require.NoError(t, host.Close(context.Background())) }()
	var b strings.Builder
	for _, entry := range host.Registry().List() {
		m := *entry.Manifest
		parameters, line := string(m.Parameters.JSON()), m.Line("description")
		identity, err := entry.Identity(t.Context())
		require.Error(t, err, "there are no modules")
		fmt.Fprintf(&b, "%s %v %s %s %q %s %d %v %+v %s\n", entry.Name, entry.Aliases, entry.Source, m.File, m.Description, parameters, line, entry.Shadowed, m.Permissions, identity)
	}
	for _, d := range host.Registry().Duplicates() {
		fmt.Fprintln(&b, *d)
	}
	for _, problem := range host.Problems() {
		fmt.Fprintln(&b, problem)
	}
	definitions := host.Definitions()
	fmt.Fprintf(&b, "%+v\n", definitions)
	return b.String()
}

// TestIndexChangesNothing edits folders of manifests at random. With the index, everything is as
// without.
func TestIndexChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	manifest := func() string {
		return fmt.Sprintf(`{"schema": "caisson/v1", "name": "%s", "aliases": [%s], "description": "%s", "module": {"path": "tool.wasm"}, "permissions": {"env": [%s]}}`,
			pick("read", "write", "list", "search", "move", "copy", "make", "find"), pick(``, `"get"`, `"put"`, `"read"`, `"move"`, `"l1st"`),
			pick("One.", "Two.", "Six."), pick(``, `"A"`, `"B"`))
	}
	// The clock of the file system is coarse, and these times are the same again and again.
	moment := time.Now().Add(-time.Hour).Truncate(time.Second)
	first, second := t.TempDir(), t.TempDir()
	indexed := filepath.Join(t.TempDir(), "index")
	options := caisson.Options{Tools: []string{first, second}}
	different, failed, broken := map[string]bool{}, 0, 0
	hidden := ""
	for range testsize.Of(100, 250) {
		if hidden != "" {
			require.NoError(t, os.Remove(hidden)) // or nothing would be loaded from now on
			hidden = ""
		}
		path := filepath.Join(pick(first, second), pick("a", "b", "c", "d", "e")+".tool."+pick("yaml", "yaml", "json"))
		old, err := os.ReadFile(path)
		switch exists := err == nil; pick("write", "write", "write", "write", "write", "break", "hide", "rename", "remove", "touch", "swap", "swap", "damage") {
		case "write":
			require.NoError(t, os.WriteFile(path, []byte(manifest()), 0o600))
		case "break":
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(manifest(), "{", `{"nonsense": true, `, 1)), 0o600))
		case "hide": // its name
			hidden = path
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(manifest(), `"name":`, `"nam":`, 1)), 0o600))
		case "rename":
			if exists {
				require.NoError(t, os.Rename(path, filepath.Join(pick(first, second), pick("a", "b", "c")+".tool.yaml")))
			}
		case "remove":
			_ = os.Remove(path)
		case "touch":
			if exists {
				require.NoError(t, os.Chtimes(path, moment, moment))
			}
		case "swap": // same size, same times
			if exists {
				require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer("One", "Two", "read", "move", `["A"]`, `["B"]`).Replace(string(old))), 0o600))
				require.NoError(t, os.Chtimes(path, moment, moment))
			}
		case "damage":
			index := filepath.Join(indexed, "manifests")
			if text, err := os.ReadFile(index); err == nil && len(text) > 0 {
				text[random.IntN(len(text))] ^= 1 << random.IntN(8)
				require.NoError(t, os.WriteFile(index, text, 0o600))
			}
		}
		want := outcome(t, options)
		remembering := options
		remembering.IndexDir = indexed
		require.Equal(t, want, outcome(t, remembering))
		different[want] = true
		if strings.Contains(want, "may have tools with the same names") {
			failed++
		}
		if strings.Contains(want, "nonsense") {
			broken++
		}
	}
	t.Log(len(different), failed, broken)
	assert.Greater(t, len(different), testsize.Of(40, 100))
	assert.Greater(t, failed, testsize.Of(3, 8))
	assert.Less(t, failed, testsize.Of(40, 100))
	assert.Greater(t, broken, testsize.Of(8, 20))
}

const oneTool = "schema: caisson/v1\nname: %s\ndescription: Does it.\nmodule: {path: tool.wasm}\n"

// TestAttackSwappedManifest: a manifest that becomes another one of the same size, with the same times,
// gets its new name. The control shows that its description in the file system has not changed.
func TestAttackSwappedManifest(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{"tool.yaml": fmt.Sprintf(oneTool, "first")})
	path := filepath.Join(dir, "tool.yaml")
	options := caisson.Options{Tools: []string{dir}, IndexDir: filepath.Join(t.TempDir(), "index")}
	before := noerr.Get(os.Stat(path))(t)
	require.Contains(t, outcome(t, options), "first")
	require.FileExists(t, filepath.Join(options.IndexDir, "manifests"))

	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, oneTool, "other"), 0o600))
	require.NoError(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
	after := noerr.Get(os.Stat(path))(t)
	control := func(info os.FileInfo) any { return []any{info.Name(), info.Size(), info.Mode(), info.ModTime()} }
	require.Equal(t, control(before), control(after))
	require.True(t, os.SameFile(before, after))
	require.Contains(t, outcome(t, options), "other")
	require.NotContains(t, outcome(t, options), "first")
}

// forge replaces a text in an index's entry of a manifest by another one of the same length.
func forge(t *testing.T, index, manifest, old, replacement string) {
	t.Helper()
	require.Len(t, replacement, len(old))
	source := noerr.Get(os.ReadFile(manifest))(t)
	text := noerr.Get(os.ReadFile(index))(t)
	key := fmt.Appendf(nil, "\n%x ", sha256.Sum256(append([]byte("yaml\n"), source...)))
	at := bytes.Index(text, key)
	require.GreaterOrEqual(t, at, 0, "the index has the manifest")
	record, _, _ := bytes.Cut(text[at+len(key):], []byte("\n"))
	copy(record, bytes.Replace(record, []byte(old), []byte(replacement), 1))
	head, entries, _ := bytes.Cut(text, []byte("\n"))
	copy(head[bytes.LastIndexByte(head, ' ')+1:], fmt.Appendf(nil, "%x", sha256.Sum256(entries)))
	require.NoError(t, os.WriteFile(index, text, 0o600))
}

// forged returns options for a tool whose manifest says that it is "honest", and of which a forged index
// says that it is "forged".
func forged(t *testing.T) caisson.Options {
	t.Helper()
	dir := tooltest.Files(t, map[string]string{"tool.yaml": fmt.Sprintf(oneTool, "honest")})
	options := caisson.Options{Tools: []string{dir}, IndexDir: filepath.Join(t.TempDir(), "index")}
	require.Contains(t, outcome(t, options), "honest")
	forge(t, filepath.Join(options.IndexDir, "manifests"), filepath.Join(dir, "tool.yaml"), "honest", "forged")
	return options
}

// TestAttackForgedIndex: a tool that a forged index gives another name is not called. In the control it has
// that name until then.
func TestAttackForgedIndex(t *testing.T) {
	host := open(t, forged(t))
	entry, control := host.Registry().Get("forged")
	require.True(t, control)
	require.ErrorIs(t, entry.Manifest.Confirm(), manifests.ErrIndex)
	report := noerr.Get(host.Execute(t.Context(), executor.Batch{Calls: []tool.Call{{ID: "1", Function: tool.Function{Name: "forged", Arguments: "{}"}}}}))(t)
	require.Equal(t, tool.Internal, report.Records[0].Result.Kind)
	require.ErrorIs(t, noerr.Error(entry.Tool.Invoke(t.Context(), tool.Invocation{Tool: "forged"})), manifests.ErrIndex)
}

// TestOpenConfirmsWhatIsCalled: if the index is wrong about a tool that will be called, no manifest is taken from it.
func TestOpenConfirmsWhatIsCalled(t *testing.T) {
	options := forged(t)
	options.Called = []string{"unknown", "forged"}
	registered := open(t, options).Registry()
	_, found := registered.Get("honest")
	require.True(t, found)
	_, found = registered.Get("forged")
	require.False(t, found)
}

// TestIndexIsNotNeeded: without a folder for it, manifests are parsed.
func TestIndexIsNotNeeded(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{"tool.yaml": fmt.Sprintf(oneTool, "it")})
	taken := tooltest.Files(t, map[string]string{"manifests/file": "", "plain": ""})
	for name, index := range map[string]string{"none": "", "a file": filepath.Join(taken, "plain"), "its name is taken": taken} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				_, found := open(t, caisson.Options{Tools: []string{dir}, IndexDir: index}).Registry().Get("it")
				assert.True(t, found)
			}
		})
	}
	entries := noerr.Get(os.ReadDir(filepath.Join(taken, "manifests")))(t)
	assert.Len(t, entries, 1)
	left := noerr.Get(os.ReadDir(taken))(t)
	assert.False(t, slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".tmp") }))
	_, err := os.Stat(filepath.Join(dir, "manifests"))
	assert.True(t, errors.Is(err, os.ErrNotExist))
}
