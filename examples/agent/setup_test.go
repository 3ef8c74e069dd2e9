package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/examples/agent/internal/scripted"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/tool"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	if _, err := guests.Compile(context.Background(), "wasm-tools/calculator", "wasm-tools/files"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const (
	keyVariable = "TEST_API_KEY"
	key         = "sk-test-0123456789abcdef"
)

// world is what one agent is run in: a scripted model, tools in the real runtime, a folder with
// one file that they may change, and who is at the terminal.
type world struct {
	endpoint  *scripted.Endpoint
	url       string
	root      string // the repository's
	project   string // what tools see as /project
	policy    string // more of it
	typed     string // what the person types, a line whenever they are asked; each agent reads it from the beginning
	absent    bool   // there is no person
	pauses    []time.Duration
	environ   map[string]string
	transport http.RoundTripper
	noticed   func(noted string) // gets each thing that is written to stderr; nil: nobody looks
}

// noticing is a writer that tells what is written.
type noticing struct {
	io.Writer
	notice func(string)
}

func (n noticing) Write(p []byte) (int, error) {
	if n.notice != nil {
		n.notice(string(p))
	}
	return n.Writer.Write(p)
}

// typist is a person who types a line whenever something is asked, and is gone after the last.
type typist struct {
	lines []string
	asked chan struct{}
	done  <-chan struct{}
}

func (y *typist) Read(p []byte) (int, error) {
	select {
	case <-y.asked:
	case <-y.done:
		return 0, io.EOF
	}
	if len(y.lines) == 0 {
		return 0, io.EOF
	}
	n := copy(p, y.lines[0])
	y.lines = y.lines[1:]
	return n, nil
}

// notice is for what is written to the terminal.
func (y *typist) notice(noted string) {
	if strings.HasSuffix(noted, ": ") || strings.HasSuffix(noted, "> ") {
		y.asked <- struct{}{}
	}
}

// newTypist returns a person who types so many lines. They are short: each is read at once.
func newTypist(ctx context.Context, typed string) *typist {
	return &typist{slices.Collect(strings.Lines(typed)), make(chan struct{}, 1000), ctx.Done()}
}

func newWorld(t *testing.T, answers ...scripted.Answer) *world {
	t.Helper()
	root, err := guests.Root()
	require.NoError(t, err)
	w := &world{endpoint: &scripted.Endpoint{Answers: answers}, root: root, project: t.TempDir(), environ: map[string]string{keyVariable: key, "PATH": os.Getenv("PATH")}}
	require.NoError(t, os.WriteFile(filepath.Join(w.project, "notes.txt"), []byte("eggs"), 0o600))
	server := httptest.NewServer(w.endpoint)
	t.Cleanup(server.Close)
	w.url = server.URL + "/v1"
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	w.transport = transport
	return w
}

// script returns the answers of a folder of testdata.
func script(t *testing.T, name string) []scripted.Answer {
	t.Helper()
	var answers []scripted.Answer
	for n := 1; ; n++ {
		body, err := os.ReadFile(filepath.Join("testdata", name, fmt.Sprintf("%d.sse", n)))
		if n > 1 && os.IsNotExist(err) {
			return answers
		}
		require.NoError(t, err)
		answers = append(answers, scripted.Answer{Body: body})
	}
}

// ran is what one run of the program came to.
type ran struct {
	code        int
	out, errors string
}

// run runs the program.
func (w *world) run(t *testing.T, arguments ...string) ran {
	t.Helper()
	if w.absent {
		return w.runWith(t.Context(), t, strings.NewReader(w.typed), arguments...)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	person, noticed := newTypist(ctx, w.typed), w.noticed
	w.noticed = func(noted string) {
		if noticed != nil {
			noticed(noted)
		}
		person.notice(noted)
	}
	defer func() { w.noticed = noticed }()
	return w.runWith(t.Context(), t, person, arguments...)
}

func (w *world) runWith(ctx context.Context, t *testing.T, stdin io.Reader, arguments ...string) ran {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "caisson.yaml")
	require.NoError(t, os.WriteFile(policy, fmt.Appendf(nil, `schema: caisson-config/v1
tools: [{path: %q}, {path: %q}, {path: %q}]
context: {project_id: {from: fixed, value: household}}
grants:
  - {tools: ["file_*"], context: [project_id], files: [{path: /project, host: %q, access: read-write}]}
%s`, filepath.Join(w.root, "wasm-tools", "calculator"), filepath.Join(w.root, "wasm-tools", "files"), filepath.Join(w.root, "wasm-tools", "client"), w.project, w.policy), 0o600))
	var out, errors bytes.Buffer
	code := run(ctx, append([]string{"--base-url", w.url, "--model", "model-1", "--api-key-env", keyVariable, "--config", policy}, arguments...), environment{
		stdin: stdin, interactive: !w.absent, stdout: &out, stderr: noticing{&errors, w.noticed}, transport: w.transport,
		lookupEnv: func(name string) (string, bool) { value, ok := w.environ[name]; return value, ok },
		wait: func(_ context.Context, pause time.Duration) error {
			w.pauses = append(w.pauses, pause)
			return nil
		},
	})
	assert.NotContains(t, out.String()+errors.String(), key, "the key is shown to nobody")
	return ran{code, out.String(), errors.String()}
}

// messages returns the messages of the latest request.
func (w *world) messages(t *testing.T) []map[string]any {
	t.Helper()
	var request struct{ Messages []map[string]any }
	requests := w.endpoint.Requests()
	require.NotEmpty(t, requests)
	require.NoError(t, json.Unmarshal(requests[len(requests)-1].Body, &request))
	return request.Messages
}

// results returns the results of the latest request by the ids of their calls.
func (w *world) results(t *testing.T) map[string]tool.Result {
	t.Helper()
	results := map[string]tool.Result{}
	for _, message := range w.messages(t) {
		if message["role"] != "tool" {
			continue
		}
		var result tool.Result
		require.NoError(t, json.Unmarshal([]byte(message["content"].(string)), &result))
		results[message["tool_call_id"].(string)] = result
	}
	return results
}

// hasFile reports whether the project's file is still there.
func (w *world) hasFile(t *testing.T) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(w.project, "notes.txt"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return err == nil
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "%s; -update writes it", file)
}

// requests returns what the agent has asked, readable, with the names of tools alone.
func (w *world) requests(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, request := range w.endpoint.Requests() {
		assert.Equal(t, "/v1/chat/completions", request.Path)
		assert.Equal(t, "Bearer "+key, request.Header.Get("Authorization"))
		assert.NotContains(t, string(request.Body), key)
		var body map[string]any
		require.NoError(t, json.Unmarshal(request.Body, &body))
		var names []any
		for _, offered := range body["tools"].([]any) {
			names = append(names, offered.(map[string]any)["function"].(map[string]any)["name"])
		}
		body["tools"] = names
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		require.NoError(t, encoder.Encode(body))
	}
	return text.String()
}
