package check

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/manifests"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client begins a manifest of a tool without a module.
const client = "schema: caisson/v1\ndescription: A tool.\nexecution: client\nname: "

func kindsOf(problems []manifests.Problem) (kinds []mistake.Kind) {
	for _, p := range problems {
		kinds = append(kinds, p.Kind)
	}
	return kinds
}

func TestRun(t *testing.T) {
	type kinds = []mistake.Kind
	wasm := "schema: caisson/v1\ndescription: A tool.\nname: a\nmodule: {path: a.wasm}\n"
	for name, test := range map[string]struct {
		files              map[string]string
		options            Options
		problems, warnings kinds
		valid              bool
		policies           int
	}{
		"a manifest":   {files: map[string]string{"tool.yaml": client + "a"}, valid: true},
		"an empty one": {files: map[string]string{"tool.yaml": ""}, problems: kinds{mistake.Syntax}},
		"no manifest":  {files: map[string]string{"readme.txt": ""}, problems: kinds{mistake.Missing}},
		"one name twice": {
			files:    map[string]string{"a.tool.yaml": client + "a", "b.tool.yaml": client + "a"},
			problems: kinds{duplicateName},
		},
		"no module":                   {files: map[string]string{"tool.yaml": wasm}, problems: kinds{badModule}},
		"no module, and none is read": {files: map[string]string{"tool.yaml": wasm}, options: Options{SkipModules: true}, valid: true},
		"a default of another type": {
			files:    map[string]string{"tool.yaml": client + "a\nparameters: {properties: {n: {type: integer, default: x}}}"},
			warnings: kinds{unusedDefault}, valid: true,
		},
		"a warning is too much": {
			files:    map[string]string{"tool.yaml": client + "a\nparameters: {properties: {n: {type: integer, default: x}}}"},
			options:  Options{Strict: true},
			warnings: kinds{unusedDefault},
		},
		"a script": {
			files:    map[string]string{"tool.yaml": wasm[:len(wasm)-2] + ", args: [-c, 'echo {x}']}\nparameters: {properties: {x: {type: string}}, required: [x]}"},
			options:  Options{SkipModules: true},
			warnings: kinds{codeInjection}, valid: true,
		},
		"a successor that is unknown": {
			files:    map[string]string{"a.tool.yaml": client + "a\ndeprecated: {use: c}", "b.tool.yaml": client + "b"},
			warnings: kinds{unknownSuccessor}, valid: true,
		},
		"a policy": {
			files:    map[string]string{"tool.yaml": client + "a", "caisson.yaml": "schema: caisson-config/v1\nask: [a, b]\n"},
			warnings: kinds{notApplied, notApplied}, valid: true, policies: 1,
		},
		"a policy for tools elsewhere": {
			files:    map[string]string{"caisson.yaml": "schema: caisson-config/v1\ntools: [{path: missing}]\n"},
			problems: kinds{unreadable}, policies: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := noerr.Get(Run(t.Context(), []string{tooltest.Files(t, test.files)}, test.options))(t)
			assert.Equal(t, test.problems, kindsOf(report.Problems), report.Problems)
			assert.Equal(t, test.warnings, kindsOf(report.Warnings), report.Warnings)
			assert.Equal(t, test.valid, report.Valid)
			assert.Equal(t, test.policies, report.Policies)
		})
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, noerr.Error(Run(ctx, []string{tooltest.Files(t, map[string]string{"tool.yaml": client + "a"})}, Options{})), context.Canceled)
}

// TestAdviceAboutAMissingModule: the host says how to skip modules, if it can.
func TestAdviceAboutAMissingModule(t *testing.T) {
	folder := tooltest.Files(t, map[string]string{"tool.yaml": "schema: caisson/v1\ndescription: A tool.\nname: a\nmodule: {path: a.wasm}\n"})
	for flag, want := range map[string]string{"": "compile the tool", "--no-module": "compile the tool, or skip modules with --no-module"} {
		report := noerr.Get(Run(t.Context(), []string{folder}, Options{SkipFlag: flag}))(t)
		require.Len(t, report.Problems, 1)
		assert.Equal(t, want, report.Problems[0].Fix)
	}
}

// TestFoldersOfTheHost: a warning names the grant with which a tool may write to a folder of the host, and no other.
func TestFoldersOfTheHost(t *testing.T) {
	folder := tooltest.Files(t, map[string]string{
		"tool.yaml": "schema: caisson/v1\ndescription: A tool.\nname: a\nmodule: {path: a.wasm}\n" +
			"permissions: {files: [{path: /project, access: read-write}]}\n",
		"caisson.yaml": "schema: caisson-config/v1\n" +
			"grants: [{tools: [a], files: [{path: /project, host: ./work, access: read-write}]}]\n",
		"work/file": "", "state/file": "",
	})
	for name, warned := range map[string]bool{"work": true, "state": false} {
		dir := filepath.Join(folder, name)
		options := Options{SkipModules: true, Folders: []Folder{{Dir: dir, Use: "records are kept in " + name, Flag: "--state-dir"}}}
		report := noerr.Get(Run(t.Context(), []string{folder}, options))(t)
		require.Empty(t, report.Problems)
		if !warned {
			assert.Empty(t, report.Warnings)
			continue
		}
		require.Len(t, report.Warnings, 1)
		assert.Equal(t, "grants[0].files[0]", report.Warnings[0].Path)
		assert.Equal(t, noCall+"records are kept in work, and a may write to "+filepath.Join(folder, "work"), report.Warnings[0].Message)
		assert.Contains(t, report.Warnings[0].Fix, "--state-dir DIR")
	}
}
