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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/dialects/openai"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	_, err := guests.Compile(context.Background(), "wasm-tools/calculator", "wasm-tools/files")
	if err == nil {
		err = guests.ShareCompiledCode(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const key = "sk-test-0123456789abcdef"

// world is the environment of one agent: a scripted model, tools in the real runtime, a folder with one
// file that they may change, and the user at the terminal.
type world struct {
	url      string
	requests []string // received by the model
	root     string   // the repository's
	project  string   // what tools see as /project
	policy   string   // appended to the policy
	typed    string   // typed by the user, one line per question
	ahead    string   // typed before the first question
	absent   bool     // whether standard input is not a terminal
}

// newWorld returns a world whose model gives the answers in order.
func newWorld(t *testing.T, answers ...string) *world {
	t.Helper()
	root, err := guests.Root()
	require.NoError(t, err)
	w := &world{root: root, project: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(w.project, "notes.txt"), []byte("eggs"), 0o600))
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		assert.Equal(t, []string{"/v1/chat/completions", "Bearer " + key}, []string{r.URL.Path, r.Header.Get("Authorization")})
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		w.requests = append(w.requests, string(body))
		if len(w.requests) > len(answers) {
			http.Error(out, "the script is over; "+key, http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(out, answers[len(w.requests)-1])
	}))
	t.Cleanup(server.Close)
	w.url = server.URL + "/v1"
	return w
}

// script returns the responses in a folder of testdata.
func script(t *testing.T, name string) (answers []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name, "*.sse"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		answers = append(answers, string(body))
	}
	return answers
}

// terminal is one whose user types a line per question, and leaves after the last one.
type terminal struct {
	shown bytes.Buffer
	lines []string
	asked chan struct{}
}

func (c *terminal) Write(p []byte) (int, error) {
	if bytes.HasSuffix(p, []byte("and why: ")) {
		c.asked <- struct{}{}
	}
	return c.shown.Write(p)
}

// typing is the input of a terminal. Lines are short enough for one Read.
type typing struct {
	*terminal
	ahead string
}

func (c *typing) Read(p []byte) (n int, err error) {
	if c.ahead != "" {
		n, c.ahead = copy(p, c.ahead), c.ahead[min(len(p), len(c.ahead)):]
		return n, nil
	}
	if _, ok := <-c.asked; !ok || len(c.lines) == 0 {
		return 0, io.EOF
	}
	n, c.lines = copy(p, c.lines[0]), c.lines[1:]
	return n, nil
}

func newTerminal(typed string) *terminal {
	return &terminal{lines: slices.Collect(strings.Lines(typed)), asked: make(chan struct{}, 100)}
}

// run runs the program, and returns its standard output and its standard error.
func (w *world) run(t *testing.T, arguments ...string) (out, shown string, err error) {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "caisson.yaml")
	require.NoError(t, os.WriteFile(policy, fmt.Appendf(nil, `schema: caisson-config/v1
tools: [{path: %q}, {path: %q}, {path: %q}]
context: {project_id: {from: fixed, value: household}}
grants:
  - {tools: ["file_*"], context: [project_id], files: [{path: /project, host: %q, access: read-write}]}
%s`, filepath.Join(w.root, "wasm-tools", "calculator"), filepath.Join(w.root, "wasm-tools", "files"), filepath.Join(w.root, "wasm-tools", "client"), w.project, w.policy), 0o600))
	c := newTerminal(w.typed)
	p := newPerson(&typing{c, w.ahead}, c, !w.absent)
	var said strings.Builder
	lookup := func(name string) (string, bool) { return key, name == "TEST_API_KEY" }
	err = run(t.Context(), append([]string{"--base-url", w.url, "--model", "model-1", "--api-key-env", "TEST_API_KEY", "--config", policy}, arguments...),
		runtime.Options{LookupEnv: lookup}, &said, p)
	close(c.asked)
	for p.lines != nil {
		if _, ok := <-p.lines; !ok {
			break
		}
	}
	shown = c.shown.String() + fmt.Sprint(err)
	assert.NotContains(t, said.String()+shown, key, "the key is never printed")
	return said.String(), shown, err
}

// results returns the results in the latest request, by call id.
func (w *world) results(t *testing.T) map[string]tool.Result {
	t.Helper()
	require.NotEmpty(t, w.requests)
	results := map[string]tool.Result{}
	for _, request := range w.requests { // each has the results of the turn before it
		answers, err := openai.New().Answers([]byte(request))
		require.NoError(t, err)
		for _, answer := range answers.Outputs {
			results[answer.CallID] = answer.Result
		}
	}
	return results
}

// hasFile reports whether the project's file is still there.
func (w *world) hasFile() bool {
	_, err := os.Stat(filepath.Join(w.project, "notes.txt"))
	return err == nil
}

// golden compares a text with a file in testdata.
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

// asked returns the requests as indented JSON, with tools reduced to their names.
func (w *world) asked(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, request := range w.requests {
		var body map[string]any
		require.NoError(t, json.Unmarshal([]byte(request), &body))
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
