package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/server/sessions"
	"github.com/caisson-run/caisson/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	fields = tooltest.Fields
	fake   = tooltest.Tool
)

func newFake(t testing.TB, name string, more fields, run func(ctx context.Context, invocation tool.Invocation) tool.Result) *fake {
	t.Helper()
	document := fields{"version": "1.0.0", "parameters": fields{"type": "object"}}
	maps.Copy(document, more)
	return tooltest.New(t, name, document, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: run(ctx, invocation)}, nil
	})
}

// says returns what a tool does that answers with a result.
func says(result tool.Result) func(context.Context, tool.Invocation) tool.Result {
	return func(context.Context, tool.Invocation) tool.Result { return result }
}

// world is a host and a server for its tools.
type world struct {
	host     *caisson.Host
	server   *mcp.Server
	agents   *agents.Store
	sessions *sessions.Sessions
	web      *httptest.Server
	requests atomic.Int32 // that are being handled

	mu     sync.Mutex
	caller auth.Caller // of HTTP requests whose client does not say
	bound  *memory.Bound
}

// everything are all scopes.
var everything = auth.Scopes()

func newWorld(t testing.TB, options mcp.Options, tools ...*fake) *world {
	t.Helper()
	w := &world{
		agents: tooltest.Agents(t, filepath.Join(t.TempDir(), "agents")), bound: memory.New(1<<40, 1<<40),
		caller: auth.Caller{ID: "token", Tenant: "acme", Scopes: everything},
	}
	w.host = noerr.Get(caisson.Open(t.Context(), caisson.Options{
		NoCache: true, Tools: []string{filepath.Join("..", "..", "wasm-tools", "client", "ask_user.tool.yaml")},
		Executor: executor.Options{Output: executor.Output{PerCall: 1024}},
	}))(t)
	for _, f := range tools {
		require.NoError(t, w.host.Registry().Register("", f))
	}
	w.sessions = noerr.Get(sessions.New(w.host, sessions.Options{Agents: w.agents}))(t)
	options.Sessions = w.sessions
	w.server = noerr.Get(mcp.New(w.host, options))(t)
	w.web = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		defer w.requests.Add(-1)
		w.mu.Lock()
		caller, bound := w.caller, w.bound
		w.mu.Unlock()
		if token := r.Header.Get("Authorization"); token != "" {
			caller = auth.Caller{}
			assert.NoError(t, json.Unmarshal([]byte(token), &caller))
		}
		held := bound.Open(memory.Sharer(caller))
		defer held.Close()
		w.server.ServeHTTP(rw, r.WithContext(memory.With(auth.With(r.Context(), caller), held)))
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		assert.NoError(t, w.server.Close(ctx))
		w.web.Close()
		assert.NoError(t, w.sessions.Close(ctx))
		assert.NoError(t, w.host.Close(ctx))
	})
	return w
}

// transport is a way to reach the server.
type transport struct {
	name    string
	connect func(t testing.TB, w *world, options *sdk.ClientOptions) *sdk.ClientSession
}

// transports are all ways to reach the server.
func transports() []transport {
	return []transport{
		{"lines", connectLines("")},
		{"lines 2025-11-25", connectLines("2025-11-25")},
		{"sessions", connectWeb("2025-11-25", nil)},
		{"stateless", connectWeb("", nil)},
	}
}

// connectLines connects over pipes, as with the standard input and output of a process.
func connectLines(version string) func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession {
	return connectLinesOf(version, "")
}

// connectLinesOf is connectLines for an agent of the tenant acme.
func connectLinesOf(version, agent string) func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession {
	return func(t testing.TB, w *world, options *sdk.ClientOptions) *sdk.ClientSession {
		t.Helper()
		var of executor.SessionOptions
		if agent != "" {
			of.AllowedNow = func() ([]string, error) {
				a, _, err := w.agents.Load(t.Context(), "acme", agent, w.host.Registry())
				return a.AllowedTools, err
			}
		}
		session := noerr.Get(w.host.NewSession(of))(t)
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- w.server.ServeLines(context.WithoutCancel(t.Context()), session, toServer, fromServer)
		}()
		connection := noerr.Get(newClient(options).Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, &sdk.ClientSessionOptions{ProtocolVersion: version}))(t)
		t.Cleanup(func() {
			_ = connection.Close()
			assert.NoError(t, <-served)
		})
		return connection
	}
}

// connectWeb connects over HTTP, as a caller if there is one.
func connectWeb(version string, caller *auth.Caller) func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession {
	return func(t testing.TB, w *world, options *sdk.ClientOptions) *sdk.ClientSession {
		t.Helper()
		transport := http.DefaultTransport.(*http.Transport).Clone()
		client := &http.Client{Transport: as{transport, caller}}
		t.Cleanup(transport.CloseIdleConnections)
		connection := noerr.Get(newClient(options).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: w.web.URL, HTTPClient: client}, &sdk.ClientSessionOptions{ProtocolVersion: version}))(t)
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
}

// as makes requests as a caller.
type as struct {
	http.RoundTripper
	caller *auth.Caller
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.caller != nil {
		token, err := json.Marshal(a.caller)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", string(token))
	}
	return a.RoundTripper.RoundTrip(r)
}

func newClient(options *sdk.ClientOptions) *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options)
}

// overAll runs a test over all transports.
func overAll(t *testing.T, test func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession)) {
	for _, over := range transports() {
		t.Run(over.name, func(t *testing.T) { test(t, over.connect) })
	}
}

// call calls a tool and returns its result.
func call(t testing.TB, c *sdk.ClientSession, name string, arguments any) *sdk.CallToolResult {
	t.Helper()
	result := noerr.Get(c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments}))(t)
	return result
}

// text returns the text of a result's part.
func text(t testing.TB, result *sdk.CallToolResult, part int) string {
	t.Helper()
	require.Greater(t, len(result.Content), part)
	content, ok := result.Content[part].(*sdk.TextContent)
	require.True(t, ok, "it is a %T", result.Content[part])
	return content.Text
}
