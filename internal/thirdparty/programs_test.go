package main

import (
	"context"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

var only = flag.String("only", "", "the programs to call, separated by spaces; all if empty")

var compiler runtime.Compiler

func TestMain(m *testing.M) {
	compiler = runtime.ChildCompiler(context.Background())
	os.Exit(m.Run())
}

// TestPrograms runs the tests that stand in the programs' manifests. Each call has a directory of its
// own for every path that the manifest requests, and nothing else.
func TestPrograms(t *testing.T) {
	w := here(t)
	chosen, err := choose(strings.Fields(*only))
	require.NoError(t, err)
	for _, p := range chosen {
		t.Run(p.name, func(t *testing.T) {
			m, err := manifests.Load(w.manifest(p.name))
			require.NoError(t, err)
			for _, test := range m.Tests {
				t.Run(test.Name, func(t *testing.T) {
					b, record := call(t, w, w.manifest(p.name), test)
					check(t, b, test.Expect, record)
					if further := moreChecks[p.name]; further != nil {
						further(t, w, b, test)
					}
				})
			}
		})
	}
}

func call(t *testing.T, w workshop, manifest string, test manifests.Test) (*bench, tool.Record) {
	t.Helper()
	b, err := open(t.Context(), manifest, benchOptions{dir: t.TempDir(), cache: filepath.Join(w.dir, "cache"), compiler: compiler})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.host.Close(context.Background())) })
	require.NoError(t, b.write(test))
	record, err := b.call(t.Context(), test)
	require.NoError(t, err)
	return b, record
}

// moreChecks see what a manifest's tests cannot say.
var moreChecks = map[string]func(t *testing.T, w workshop, b *bench, test manifests.Test){
	"resinator": checkResources,
	"resvg":     checkPicture,
	"ripgrep":   checkWithoutSuccessCodes,
}

func checkPicture(t *testing.T, _ workshop, b *bench, test manifests.Test) {
	if !*test.Expect.Success {
		return
	}
	file, err := os.Open(b.file("/project/a.png"))
	require.NoError(t, err)
	defer file.Close()
	picture, err := png.Decode(file)
	require.NoError(t, err)
	assert.Equal(t, image.Rect(0, 0, 2, 2), picture.Bounds())
	for at := range 4 {
		assert.Equal(t, color.NRGBA{R: 255, A: 255}, picture.At(at%2, at/2))
	}
}

func checkResources(t *testing.T, _ workshop, b *bench, test manifests.Test) {
	if !*test.Expect.Success {
		return
	}
	compiled, err := os.ReadFile(b.file("/project/a.res"))
	require.NoError(t, err)
	// A string's length and characters, 16 bits each; numbers 0 and 1 of the table's 16 strings.
	assert.Contains(t, string(compiled), "\x00\x00\x03\x00t\x00e\x00a\x00\x00\x00")
}

// checkWithoutSuccessCodes: if its manifest does not say that exit code 1 is no failure, a search that
// finds nothing is one, for no other reason, although ripgrep looked for files that nobody granted.
func checkWithoutSuccessCodes(t *testing.T, w workshop, _ *bench, test manifests.Test) {
	if test.Expect.Output == nil || *test.Expect.Output != "" {
		return
	}
	text, err := os.ReadFile(w.manifest("ripgrep"))
	require.NoError(t, err)
	const line = "  success_codes: [1] # nothing matches\n"
	require.Contains(t, string(text), line)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool.yaml"), []byte(strings.Replace(string(text), line, "", 1)), 0o600))
	require.NoError(t, copyFile(w.module("ripgrep"), filepath.Join(dir, "ripgrep.wasm")))
	_, record := call(t, w, filepath.Join(dir, "tool.yaml"), test)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 1"}, record.Result)
	assert.NotEmpty(t, record.Denials)
}

func check(t *testing.T, b *bench, want manifests.Expect, record tool.Record) {
	t.Helper()
	result := record.Result
	assert.Equal(t, *want.Success, result.Success, result.Error)
	assert.Equal(t, want.Kind, string(result.Kind), result.Error)
	if want.Output != nil {
		assert.Equal(t, *want.Output, result.Output)
	}
	assert.Contains(t, result.Error, want.Error)
	if want.Data != nil {
		assert.JSONEq(t, string(want.Data), string(result.Data))
	}
	for guest, content := range want.Files {
		actual, err := os.ReadFile(b.file(guest))
		if assert.NoError(t, err) {
			assert.Equal(t, content, string(actual))
		}
	}
}

// TestManifests: every program has a manifest and every manifest a program, and its tests show an exact
// answer, first, and a failure in the program's own words.
func TestManifests(t *testing.T) {
	w := here(t)
	folders, err := os.ReadDir(filepath.Join(w.home, "tools"))
	require.NoError(t, err)
	var found, named []string
	for _, folder := range folders {
		found = append(found, folder.Name())
	}
	languages := map[string]bool{}
	for _, p := range catalogue {
		named = append(named, p.name)
		languages[p.language] = true
		m, err := manifests.Load(w.manifest(p.name))
		require.NoError(t, err)
		assert.Equal(t, []string{p.name, p.name + ".wasm"}, []string{m.Name, m.Module.Path})
		answers, fails := 0, 0
		for _, test := range m.Tests {
			require.NotNil(t, test.Expect.Success, "%s: %s", p.name, test.Name)
			switch {
			case *test.Expect.Success:
				exact := test.Expect.Data != nil || test.Expect.Output != nil
				assert.True(t, exact, "%s: %s does not say what the answer is", p.name, test.Name)
				answers++
			case test.Expect.Kind != string(tool.Denied):
				assert.NotEmpty(t, test.Expect.Error, "%s: %s does not say in which words it fails", p.name, test.Name)
				fails++
			}
		}
		assert.NotZero(t, answers, p.name)
		assert.NotZero(t, fails, p.name)
		assert.True(t, *m.Tests[0].Expect.Success, "%s: the first test is what is measured", p.name)
	}
	assert.ElementsMatch(t, found, named)
	assert.GreaterOrEqual(t, len(named), 20)
	assert.GreaterOrEqual(t, len(languages), 5)
}

// TestTable: docs/programs.md names the programs of the catalogue at their versions, in its order.
func TestTable(t *testing.T) {
	w := here(t)
	page, err := os.ReadFile(filepath.Join(w.home, "..", "..", "docs", "programs.md"))
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(page), columns)
	assert.Equal(t, introduction, before)
	rows, after, _ := strings.Cut(rest, "\n\n")
	assert.Equal(t, conclusion, "\n"+after)
	var want, got []string
	for _, p := range catalogue {
		row, err := w.row(t.Context(), p)
		require.NoError(t, err)
		want = append(want, row)
	}
	for row := range strings.Lines(rows + "\n") {
		cells := strings.SplitAfter(row, "|")
		require.Len(t, cells, 10, row) // nothing, the columns and the line's end
		got = append(got, strings.Join(cells[:5], ""))
	}
	assert.Equal(t, want, got, "`make programs` writes the table")
}

func here(t *testing.T) workshop {
	t.Helper()
	w, err := newWorkshop()
	require.NoError(t, err)
	return w
}
