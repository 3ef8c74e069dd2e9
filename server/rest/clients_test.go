//go:build openapi

package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/server/rest"
)

// generators is the folder with what "make openapi-clients" has installed.
var generators = flag.String("generators", "", "the `folder` with the generators of clients")

// served is a server in a process of its own, as clients find it.
type served struct {
	url, token string
	document   string // the file with its OpenAPI document
}

// TestClients: clients that generators make from the document compile, and call the server: a tool, a batch, a run that
// waits for an output and an approval, pages of a result, refusals by their type, and the end of a session.
func TestClients(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, *generators, `run "make openapi-clients"`)
	server := serveCommand(t)
	want := func(language string) string {
		return `{"call":"42","batch":["2","4"],"waited":["approval","tool_output"],"run":["Yes.","deleted ` + language + `.txt"],"listed":2,"pages":[50000,40000],` +
			`"problem":422,"stranger":"Unauthorized","session":[204,404]}`
	}
	for language, client := range map[string]func(t *testing.T, server served) string{"python": pythonClient, "typescript": typescriptClient, "go": goClient} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			assert.JSONEq(t, want(language), client(t, server))
		})
	}
}

// TestClientsDocumentStatesChecks: the server refuses requests that are not of the document, and refuses none that are
// as malformed. Its answers are in the document.
func TestClientsDocumentStatesChecks(t *testing.T) {
	t.Parallel()
	server := serveCommand(t)
	run := server.pausedRun(t)
	check := func(document string, options ...string) (report string, err error) {
		dir := copied(t, "python") // it keeps files
		config, err := os.OpenFile(filepath.Join(dir, "checks.toml"), os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = fmt.Fprintf(config, "\n[parameters]\nrun_id = %q\n", run)
		require.NoError(t, err)
		require.NoError(t, config.Close())
		command := exec.CommandContext(t.Context(), python(), append([]string{
			"-m", "schemathesis.cli", "--config-file", "checks.toml", "run", document, "--url", server.url, "--header", "Authorization: Bearer " + server.token,
		}, options...)...)
		command.Dir = dir
		text, err := command.CombinedOutput()
		return string(text), err
	}
	report, err := check(server.document)
	require.NoError(t, err, report)

	// The control: documents that say less, or more, than the server checks.
	text, err := os.ReadFile(server.document)
	require.NoError(t, err)
	for _, wrong := range []struct{ old, new, operation, fault string }{
		{`"minimum":0,"maximum":100,"default":50`, `"minimum":0,"default":50`, "list_runs", "Schema-valid request rejected"},
		{`"minimum":0,"maximum":100,"default":50`, `"minimum":0,"maximum":10`, "list_runs", "Schema-violating request accepted"},
		{`"404":{"$ref":"#/components/responses/404"},`, ``, "get_tool", "Undocumented status code"},
	} {
		require.Contains(t, string(text), wrong.old)
		document := filepath.Join(t.TempDir(), "openapi.json")
		require.NoError(t, os.WriteFile(document, bytes.ReplaceAll(text, []byte(wrong.old), []byte(wrong.new)), 0o600))
		report, err := check(document, "--include-operation-id", wrong.operation)
		assert.Error(t, err)
		assert.Contains(t, report, wrong.fault)
	}
}

// TestClientsDocumentIsValid: the document is one of OpenAPI 3.1.
func TestClientsDocumentIsValid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "openapi.json")
	require.NoError(t, os.WriteFile(file, newDocument(t), 0o600))
	execute(t, ".", python(), "-m", "openapi_spec_validator", "--schema", "3.1", file)
	require.NoError(t, os.WriteFile(file, bytes.Replace(newDocument(t), []byte(`"responses"`), []byte(`"answers"`), 1), 0o600))
	assert.Error(t, exec.CommandContext(t.Context(), python(), "-m", "openapi_spec_validator", "--schema", "3.1", file).Run())
}

func python() string { return filepath.Join(*generators, "python", "bin", "python") }

// pythonClient generates and checks a client with openapi-python-client and mypy, and returns its output.
func pythonClient(t *testing.T, server served) string {
	dir := copied(t, "python")
	execute(t, dir, python(), "-m", "openapi_python_client", "generate", "--path", server.document, "--config", "generator.yaml", "--meta", "none", "--output-path", "caisson_client", "--fail-on-warning")
	execute(t, dir, python(), "-m", "mypy", "--strict", "--no-warn-redundant-casts", "--cache-dir", filepath.Join(*generators, "mypy"), "client.py", "caisson_client")
	return execute(t, dir, python(), "client.py", server.url, server.token)
}

// typescriptClient generates types with openapi-typescript, compiles a program that uses them, and returns what it
// prints.
func typescriptClient(t *testing.T, server served) string {
	dir := copied(t, "typescript")
	modules := filepath.Join(*generators, "typescript", "node_modules")
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	execute(t, dir, "node", filepath.Join(modules, "openapi-typescript", "bin", "cli.js"), server.document, "--output", "caisson.ts")
	types, err := os.ReadFile(filepath.Join(dir, "caisson.ts"))
	require.NoError(t, err)
	for _, name := range []string{"webhooks", "$defs"} { // types of the generator's own, for what the document does not have
		types = bytes.Replace(types, []byte("export type "+name+" = Record<string, never>;"), nil, 1)
	}
	assert.NotContains(t, string(types), "Record<string, never>", "a program can write nothing there")
	execute(t, dir, "node", filepath.Join(modules, "typescript", "bin", "tsc"))
	return execute(t, dir, "node", filepath.Join("out", "client.js"), server.url, server.token)
}

// goClient generates a client with oapi-codegen, vets and builds it, and returns its output.
func goClient(t *testing.T, server served) string {
	dir := copied(t, "go")
	execute(t, dir, filepath.Join(*generators, "oapi-codegen"), "--config", "generator.yaml", "-o", "generated.go", server.document)
	execute(t, dir, "go", "vet", ".")
	execute(t, dir, "go", "build", "-ldflags=-s", "-o", "client", ".")
	return execute(t, dir, filepath.Join(dir, "client"), server.url, server.token)
}

// copied returns a copy of a folder of testdata/clients.
func copied(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "clients", name))))
	return dir
}

// execute runs a program, which has to succeed, and returns its output.
func execute(t *testing.T, dir, program string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = dir
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	require.NoError(t, err, "%s %s:\n%s\n%s", program, strings.Join(arguments, " "), &out, &errs)
	return out.String()
}

// newDocument returns the document that the API serves.
func newDocument(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(newWorld(t, rest.Options{}).doc.raw)
	require.NoError(t, err)
	return text
}

// serveCommand starts "caisson serve" with tools that wait for nothing, for an output and for an approval, and a token.
func serveCommand(t *testing.T) served {
	t.Helper()
	root, err := guests.Compile(t.Context(), "wasm-tools/calculator", "wasm-tools/files")
	require.NoError(t, err)
	dir := t.TempDir()
	workspace, state, program := filepath.Join(dir, "workspace"), filepath.Join(dir, "state"), filepath.Join(dir, "caisson")
	require.NoError(t, os.Mkdir(workspace, 0o700))
	for name, content := range map[string]string{
		"python.txt": "x", "typescript.txt": "x", "go.txt": "x", "long.txt": strings.Repeat("0123456789", 9_000),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(workspace, name), []byte(content), 0o600))
	}
	policy, err := json.Marshal(map[string]any{
		"schema": "caisson-config/v1",
		"tools": []map[string]any{
			{"path": filepath.Join(root, "wasm-tools", "calculator")}, {"path": filepath.Join(root, "wasm-tools", "files")}, {"path": filepath.Join(root, "wasm-tools", "client")},
		},
		"context": map[string]any{"project_id": map[string]any{"from": "fixed", "value": "demo"}},
		"grants": []map[string]any{{
			"tools": []string{"file_*"}, "context": []string{"project_id"}, "files": []map[string]any{{"path": "/project", "host": workspace, "access": "read-write"}},
		}},
	})
	require.NoError(t, err)
	config := filepath.Join(dir, "caisson.yaml")
	require.NoError(t, os.WriteFile(config, policy, 0o600))
	execute(t, root, "go", "build", "-ldflags=-s", "-o", program, "./cmd/caisson")
	token := strings.TrimSpace(execute(t, dir, program, "token", "create", "--quiet", "--name", "test", "--tenant", "acme", "--state-dir", state,
		"--scope", "read", "--scope", "call", "--scope", "approve", "--scope", "admin"))

	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--addr", "localhost:0", "--config", config, "--state-dir", state)
	stderr, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	listens, read := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, url, ok := strings.Cut(lines.Text(), " at "); ok && strings.HasPrefix(url, "http://") {
				listens <- url
			}
		}
	}()
	t.Cleanup(func() {
		assert.NoError(t, command.Process.Signal(os.Interrupt))
		<-read
		assert.NoError(t, command.Wait())
	})
	server := served{token: token, document: filepath.Join(dir, "openapi.json")}
	select {
	case server.url = <-listens:
	case <-read:
		t.Fatal("the server did not listen")
	}
	require.NoError(t, os.WriteFile(server.document, server.ask(t, http.MethodGet, "/openapi.json", ""), 0o600))
	return server
}

// ask makes a request, which has to succeed, and returns the answer.
func (s served) ask(t *testing.T, method, path, body string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Less(t, response.StatusCode, 300, "%s", text)
	return text
}

// pausedRun starts a run that waits for an output, and returns its id.
func (s served) pausedRun(t *testing.T) (id string) {
	t.Helper()
	var started struct{ ID string }
	require.NoError(t, json.Unmarshal(s.ask(t, http.MethodPost, "/v1/runs", `{"calls":[{"name":"ask_user","arguments":{"question":"Which?"}}]}`), &started))
	return started.ID
}
