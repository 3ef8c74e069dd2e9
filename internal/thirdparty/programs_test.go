package main

import (
	"bytes"
	"context"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
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

// TestPrograms runs the tests in the programs' manifests. Each call has a separate directory for every path that the
// manifest requests, and nothing else.
func TestPrograms(t *testing.T) {
	w := here(t)
	chosen, err := choose(strings.Fields(*only))
	require.NoError(t, err)
	rt, err := newRuntime(t.Context(), compiler, filepath.Join(w.dir, "cache"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	for _, p := range chosen {
		t.Run(p.name, func(t *testing.T) {
			m, err := manifests.Load(w.manifest(p.name))
			require.NoError(t, err)
			for _, test := range m.Tests {
				t.Run(test.Name, func(t *testing.T) {
					assert.NoError(t, cases.Run(t.Context(), rt, m, test, t.TempDir()))
				})
			}
			if more := moreTests[p.name]; more != nil {
				more(t, w, rt, m)
			}
		})
	}
}

// TestReplays: the calls in the programs' manifests have the same result and the same fuel when they are replayed,
// without the files that they have read.
func TestReplays(t *testing.T) {
	w := here(t)
	chosen, err := choose(strings.Fields(*only))
	require.NoError(t, err)
	rt, err := newRuntime(t.Context(), compiler, filepath.Join(w.dir, "cache"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	equal := 0
	for _, p := range chosen {
		m, err := manifests.Load(w.manifest(p.name))
		require.NoError(t, err)
		for _, test := range m.Tests {
			of, err := cases.Replay(t.Context(), rt, m, test, t.TempDir(), 3)
			assert.NoError(t, err, "%s: %s", p.name, test.Name)
			equal += of.Equal
		}
	}
	assert.GreaterOrEqual(t, equal, 3*len(chosen))
	t.Logf("%d replays are equal", equal)
}

// moreTests see what the tests in a manifest cannot say.
var moreTests = map[string]func(t *testing.T, w workshop, rt *runtime.Runtime, m *manifests.Manifest){
	"php":       programsForOtherHostsLoad,
	"python":    pythonRepeatsWhatIsSaid,
	"resinator": resourcesAreCompiled,
	"resvg":     pictureIsRendered,
	"ripgrep":   codesWithoutSuccessFail,
}

// programsForOtherHostsLoad: modules of the package that has PHP import preview 0 or WasmEdge's sockets, and load. One
// answers.
func programsForOtherHostsLoad(t *testing.T, w workshop, rt *runtime.Runtime, _ *manifests.Manifest) {
	installed, err := w.folder("npm/node_modules/"+sandboxModules+"/dist/langs", false)
	require.NoError(t, err)
	load := func(name, more string) *manifests.Manifest {
		source, err := os.ReadFile(filepath.Join(installed, name+".wasm"))
		require.NoError(t, err)
		imports := "wasi_unstable"
		if name == "wasmedge_quickjs" {
			imports = "sock_open"
		}
		assert.Contains(t, string(source), imports, name)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".wasm"), source, 0o600))
		file := filepath.Join(dir, "tool.yaml")
		text := "schema: caisson/v1\nname: other_host\ndescription: A program for another host.\n" +
			"module: {path: " + name + ".wasm, stdout: text" + more
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		m, err := manifests.Load(file)
		require.NoError(t, err)
		_, err = rt.Load(t.Context(), m, manifests.Grants{})
		require.NoError(t, err, name)
		return m
	}
	for _, name := range []string{"clang", "wasm-ld", "wasmedge_quickjs"} {
		load(name, "}\n")
		found, err := runtime.RecogniseFile(filepath.Join(installed, name+".wasm"))
		require.NoError(t, err)
		assert.Empty(t, found.Unoffered, name)
	}
	sqlite := load("sqlite", `, args: [":memory:", "select 6 * 7"]}
tests: [{name: multiplies, arguments: {}, expect: {success: true, output: "42\n"}}]
`)
	assert.NoError(t, cases.Run(t.Context(), rt, sqlite, sqlite.Tests[0], t.TempDir()))
}

func pictureIsRendered(t *testing.T, _ workshop, rt *runtime.Runtime, m *manifests.Manifest) {
	rendered := fileAfter(t, rt, m, "/project/a.png")
	picture, err := png.Decode(bytes.NewReader(rendered))
	require.NoError(t, err)
	assert.Equal(t, image.Rect(0, 0, 2, 2), picture.Bounds())
	for at := range 4 {
		assert.Equal(t, color.NRGBA{R: 255, A: 255}, color.NRGBAModel.Convert(picture.At(at%2, at/2)))
	}
}

func resourcesAreCompiled(t *testing.T, _ workshop, rt *runtime.Runtime, m *manifests.Manifest) {
	compiled := fileAfter(t, rt, m, "/project/a.res")
	// Strings 0, 1 and 2 of the table, each as its length and its characters, 16 bits each.
	assert.Contains(t, string(compiled), "\x00\x00\x03\x00t\x00e\x00a\x00\x00\x00")
}

// fileAfter returns a file that the first test leaves.
func fileAfter(t *testing.T, rt *runtime.Runtime, m *manifests.Manifest, guest string) []byte {
	t.Helper()
	workspace, err := cases.Open(t.Context(), rt, m, m.Tests[0], t.TempDir())
	require.NoError(t, err)
	_, err = workspace.Call(t.Context(), m.Tests[0].Arguments)
	require.NoError(t, err)
	content, err := os.ReadFile(workspace.File(guest))
	require.NoError(t, err)
	return content
}

// codesWithoutSuccessFail: if its manifest does not list exit code 1 as a success, a search that finds nothing fails,
// and for no other reason, although ripgrep looked for files that are not granted.
func codesWithoutSuccessFail(t *testing.T, w workshop, rt *runtime.Runtime, m *manifests.Manifest) {
	at := slices.IndexFunc(m.Tests, func(test manifests.Test) bool { return test.Name == "finds nothing" })
	require.NotEqual(t, -1, at)
	text, err := os.ReadFile(w.manifest("ripgrep"))
	require.NoError(t, err)
	const line = "  success_codes: [1] # nothing matches\n"
	require.Contains(t, string(text), line)
	strict, err := manifests.Parse(w.manifest("ripgrep"), []byte(strings.Replace(string(text), line, "", 1)))
	require.NoError(t, err)
	workspace, err := cases.Open(t.Context(), rt, strict, m.Tests[at], t.TempDir())
	require.NoError(t, err)
	record, err := workspace.Call(t.Context(), m.Tests[at].Arguments)
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 1"}, record.Result)
	assert.NotEmpty(t, record.Denials)
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
		assert.True(t, *m.Tests[0].Expect.Success, "%s: the first test is the measured one", p.name)
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
