// Package mcp has only this test, which does what the README says.
package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/testsize"
)

// The README's values that are different on each machine.
const (
	program = "/usr/local/bin/caisson"
	clone   = "/home/ada/caisson"
	address = "http://localhost:8711"
	secret  = "caisson_…"
)

// block is one piece of code in the README.
type block struct{ language, text string }

func blocks(t *testing.T) []block {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var found []block
	for _, match := range regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		found = append(found, block{match[1], match[2]})
		if match[1] == "json" {
			require.True(t, json.Valid([]byte(match[2])), match[2])
		}
	}
	return found
}

// installed is a machine on which the command and the clone are in folders of the test.
type installed struct{ program, clone, state string }

func install(t *testing.T) installed {
	t.Helper()
	root, err := guests.Compile(t.Context())
	require.NoError(t, err)
	require.NoError(t, guests.ShareCompiledCode(t.Context()))
	dir := t.TempDir()
	// The command stays in the checkout, so that it is linked again only if something has changed.
	m := installed{filepath.Join(root, "bin", "examples-mcp", "caisson"), filepath.Join(dir, "clone"), filepath.Join(dir, "state")}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s", "-o", m.program, "./cmd/caisson")
	build.Dir = root
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	here := filepath.Join(m.clone, "examples", "mcp")
	require.NoError(t, os.MkdirAll(filepath.Join(here, "workspaces", "notes"), 0o700))
	require.NoError(t, os.CopyFS(filepath.Join(m.clone, "wasm-tools"), os.DirFS(filepath.Join(root, "wasm-tools"))))
	policy, err := os.ReadFile("caisson.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(here, "caisson.yaml"), policy, 0o600))
	return m
}

// run returns a command of the README on this machine.
func (m installed) run(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	for i, word := range words {
		words[i] = strings.Replace(strings.Replace(word, program, m.program, 1), clone, m.clone, 1)
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), words[0], append(words[1:], "--state-dir", m.state)...)
	command.Dir = t.TempDir() // assistants start commands anywhere
	command.Stderr = os.Stderr
	return command
}

// answers requires that a server lists and calls tools.
func answers(t *testing.T, transport sdk.Transport) {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	require.NoError(t, err)
	list, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, offered := range list.Tools {
		names = append(names, offered.Name)
	}
	assert.Subset(t, names, []string{"calculator", "fetch_page", "file_write", "read_output"})
	for name, arguments := range map[string]any{"calculator": map[string]any{"expression": "6*7"}, "file_write": map[string]any{"path": "a.txt", "content": "hello"}} {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
		require.NoError(t, err)
		assert.False(t, result.IsError, "%s: %v", name, result.Content)
	}
	require.NoError(t, session.Close())
}

// TestCommandsOfTheREADME: each command that an assistant or a framework starts answers.
func TestCommandsOfTheREADME(t *testing.T) {
	m := install(t)
	command := regexp.MustCompile(`"?command"?\s*[:=]\s*"([^"]+)"`)
	arguments := regexp.MustCompile(`"?args"?\s*[:=]\s*(\[[^\]]*\])`)
	started, tried := map[string]int{}, map[string]bool{}
	for _, b := range blocks(t) {
		match := command.FindStringSubmatch(b.text)
		if match == nil {
			continue
		}
		var args []string
		require.NoError(t, json.Unmarshal([]byte(arguments.FindStringSubmatch(b.text)[1]), &args))
		started[b.language]++
		line := strings.Join(append([]string{match[1]}, args...), "\x00")
		if tried[line] || !testsize.Slow && len(tried) > 0 {
			continue // several assistants start the same command
		}
		tried[line] = true
		answers(t, &sdk.CommandTransport{Command: m.run(t, append([]string{match[1]}, args...)...)})
	}
	assert.Equal(t, map[string]int{"json": 3, "toml": 1, "python": 2}, started)
}

// bearer makes requests with the headers that an assistant is told to send.
type bearer struct {
	http.RoundTripper
	headers map[string]string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	return b.RoundTripper.RoundTrip(r)
}

// TestServerOfTheREADME: the server answers only assistants that are set up as the README says.
func TestServerOfTheREADME(t *testing.T) {
	m := install(t)
	var token, url string
	type remote struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	asked := 0
	for _, b := range blocks(t) {
		for line := range strings.Lines(b.text) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "caisson token "); ok {
				name := regexp.MustCompile(`"[^"]*"`)
				words := append([]string{program, "token"}, strings.Fields(name.ReplaceAllString(rest, "editor"))...)
				printed, err := m.run(t, words...).Output()
				require.NoError(t, err)
				token = strings.TrimSpace(string(printed))
			}
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "caisson serve "); ok {
				url = serve(t, m, strings.Fields(rest))
			}
		}
		var document map[string]map[string]remote
		if b.language != "json" || json.Unmarshal([]byte(b.text), &document) != nil {
			continue
		}
		for _, servers := range document {
			r := servers["caisson"]
			if r.URL == "" {
				continue
			}
			asked++
			endpoint := strings.Replace(r.URL, address, url, 1)
			require.NotEqual(t, r.URL, endpoint)
			for name, value := range r.Headers {
				r.Headers[name] = strings.Replace(value, secret, token, 1)
			}
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			answers(t, &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: bearer{transport, r.Headers}}})

			_, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: transport}}, nil)
			require.Error(t, err, "without a token")
		}
	}
	assert.Equal(t, 2, asked)
}

// serve starts the README's server on any free port.
func serve(t *testing.T, m installed, flags []string) (url string) {
	t.Helper()
	command := m.run(t, append([]string{program, "serve", "--addr", "localhost:0"}, flags...)...)
	command.Stderr = nil
	stderr, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines := bufio.NewScanner(stderr)
	for url == "" && lines.Scan() {
		_, url, _ = strings.Cut(lines.Text(), " at ")
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() { // so that it is never kept from writing
		}
	}()
	t.Cleanup(func() {
		assert.NoError(t, command.Process.Signal(os.Interrupt))
		<-read
		assert.NoError(t, command.Wait())
	})
	require.NotEmpty(t, url)
	return url
}
