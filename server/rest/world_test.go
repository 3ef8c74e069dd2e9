package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/server/sessions"
	"github.com/caisson-run/caisson/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everything are all scopes.
var everything = auth.Scopes()

// callers are those who have a token in these tests, by the token's text.
var callers = map[string]auth.Caller{
	"ada":      {ID: "t-ada", Tenant: "acme", User: "ada", Scopes: everything, Context: map[string]string{"project_id": "p1"}},
	"bob":      {ID: "t-bob", Tenant: "acme", User: "bob", Scopes: everything, Context: map[string]string{"project_id": "p1"}},
	"approver": {ID: "t-app", Tenant: "acme", User: "eve", Scopes: []auth.Scope{auth.Read, auth.Approve}},
	"deputy":   {ID: "t-dep", Tenant: "acme", User: "dan", Scopes: []auth.Scope{auth.Approve}},
	"manager":  {ID: "t-man", Tenant: "acme", User: "max", Scopes: []auth.Scope{auth.Call, auth.Admin}},
	"worker":   {ID: "t-wrk", Tenant: "acme", User: "joe", Scopes: []auth.Scope{auth.Read, auth.Call}},
	"reader":   {ID: "t-rea", Tenant: "acme", Scopes: []auth.Scope{auth.Read}},
	"mallory":  {ID: "t-mal", Tenant: "evil", User: "ada", Scopes: everything, Context: map[string]string{"project_id": "p1"}},
	"clerk":    {ID: "t-clk", Tenant: "acme", User: "ada", Scopes: everything, Agent: "clerk"},
	"solo":     {ID: "t-sol", Scopes: everything, Context: map[string]string{"project_id": "p1"}},
	"other":    {ID: "t-oth", Scopes: everything, Context: map[string]string{"project_id": "p1"}},
	"ghost":    {ID: "t-gho", Tenant: "acme", User: "ada", Scopes: everything, Agent: "nobody"},
}

// world is a server over the tools that come with Caisson, and two functions that wait and write.
type world struct {
	t      *testing.T
	url    string
	host   *caisson.Host
	api    *rest.API
	agents *agents.Store
	doc    *contract
	// underWay counts the requests to a bounded server that it has not answered.
	underWay atomic.Int64
	log      *tooltest.Log
	state    string
	isDead   bool // others take it for dead, and have recorded its calls

	mu      sync.Mutex
	wiped   []string      // what the tool wipe was asked for
	waiting chan struct{} // gets one for each call of the tool wait that has started
	let     chan struct{} // a call of the tool wait ends for each
	stopped chan struct{} // gets one for each call of the tool wait that was cancelled
}

var compiled = sync.OnceValues(func() (string, error) {
	return guests.Compile(context.Background(), "wasm-tools/calculator", "wasm-tools/files")
})

func newWorld(t *testing.T, options rest.Options) *world { return replicaOf(t, nil, options) }

// replicaOf returns another server with the state folder of one, or the first.
func replicaOf(t *testing.T, of *world, options rest.Options) *world {
	t.Helper()
	root := noerr.Get(compiled())(t)
	dir := t.TempDir()
	w := &world{
		t: t, agents: tooltest.Agents(t, filepath.Join(dir, "agents")), log: &tooltest.Log{}, state: filepath.Join(dir, "state"),
		waiting: make(chan struct{}, 100), let: make(chan struct{}, 100), stopped: make(chan struct{}, 100),
	}
	if of != nil {
		w.state, w.agents = of.state, of.agents
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "ws", "p1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ws", "p1", "notes.txt"), []byte("dig\n"), 0o600))
	broken := filepath.Join(dir, "broken", "broken.tool.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(broken), 0o700))
	require.NoError(t, os.WriteFile(broken, []byte("schema: caisson/v1\nname: broken\ndescription: Broken.\nnonsense: 1\n"), 0o600))
	alike := filepath.Join(filepath.Dir(broken), "alike.tool.yaml")
	require.NoError(t, os.WriteFile(alike, []byte("schema: caisson/v1\nname: ca1culator\ndescription: Looks like another.\nexecution: client\n"), 0o600))
	policy := noerr.Get(manifests.ParsePolicy(filepath.Join(dir, "caisson.yaml"), []byte(fmt.Sprintf(`
schema: caisson-config/v1
tools: [{path: %q}, {path: %q}, {path: %q}, {path: %q}]
context: {project_id: {from: token}}
grants: [{tools: ["file_*"], context: [project_id], files: [{path: /project, host: "./ws/{project_id}", access: read-write, quota: 1MiB}]}]
`, filepath.Join(root, "wasm-tools", "calculator"), filepath.Join(root, "wasm-tools", "files"), filepath.Join(root, "wasm-tools", "client"), filepath.Dir(broken)))))(t)
	logger := slog.New(slog.NewTextHandler(w.log, nil))
	_, folder := noerr.Get2(guests.CompiledCode())(t)
	o := caisson.Options{Policies: []*manifests.Policy{policy}, StateDir: w.state, Logger: logger}
	o.Runtime.CacheDir = folder
	host := noerr.Get(caisson.Open(t.Context(), o))(t)
	w.host = host
	w.register(host)
	kept := noerr.Get(sessions.New(host, sessions.Options{Agents: w.agents}))(t)
	options.Sessions, options.Agents, options.Logger = kept, w.agents, logger
	w.api = noerr.Get(rest.New(host, options))(t)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if caller, ok := callers[token]; ok {
			r = r.WithContext(auth.With(r.Context(), caller))
		}
		w.api.ServeHTTP(rw, r)
	}))
	w.url = server.URL
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.api.Close(over) // it says which runs it has cancelled
		server.CloseClientConnections()
		server.Close()
		assert.NoError(t, kept.Close(context.Background()))
		if err := host.Close(context.Background()); !w.isDead {
			assert.NoError(t, err)
		}
	})
	w.doc = readContract(t, w.request("GET", "/openapi.json", "", nil).body)
	return w
}

// register adds the tools that tests hold in hand.
func (w *world) register(host *caisson.Host) {
	wait := noerr.Get(native.New(native.About{Name: "wait", Description: "Waits.", Timeout: time.Minute}, func(ctx context.Context, a struct {
		Text string `json:"text,omitempty"`
	}) (string, error) {
		w.waiting <- struct{}{}
		select {
		case <-w.let:
			return "waited " + a.Text, nil
		case <-ctx.Done():
			w.stopped <- struct{}{}
			return "", ctx.Err()
		}
	}))(w.t)
	wipe := noerr.Get(native.New(native.About{Name: "wipe", Description: "Wipes.", Behavior: manifests.Behavior{Destructive: true}}, func(_ context.Context, a struct {
		What string `json:"what"`
	}) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wiped = append(w.wiped, a.What)
		return "wiped " + a.What, nil
	}))(w.t)
	echo := noerr.Get(native.New(native.About{Name: "echo", Description: "Returns its arguments.", Retired: []string{"parrot"}, Parameters: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, a json.RawMessage) (string, error) { return string(a), nil }))(w.t)
	for _, one := range []registry.Tool{wait, wipe, echo} {
		require.NoError(w.t, host.Registry().Register("", one))
	}
}

func (w *world) wipes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.wiped...)
}

// answered is an answer, whole.
type answered struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// request makes a request with a caller's token. A body that is text is sent as it is, and any other as JSON.
func (w *world) request(method, path, as string, body any, headers ...string) answered {
	w.t.Helper()
	response := w.open(w.t.Context(), method, path, as, body, headers...)
	defer response.Body.Close()
	text := noerr.Get(io.ReadAll(response.Body))(w.t)
	a := answered{w.t, response.StatusCode, response.Header, text}
	if w.doc != nil {
		w.doc.check(w.t, method, path, a)
		w.doc.checkBody(w.t, method, path, body, a)
	}
	return a
}

// open makes a request, and leaves its answer to be read.
func (w *world) open(ctx context.Context, method, path, as string, body any, headers ...string) *http.Response {
	w.t.Helper()
	response := noerr.Get(w.try(ctx, method, path, as, body, headers...))(w.t)
	return response
}

func (w *world) try(ctx context.Context, method, path, as string, body any, headers ...string) (*http.Response, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, w.url+path, content)
	if err != nil {
		return nil, err
	}
	if as != "" {
		request.Header.Set("Authorization", "Bearer "+as)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(request)
}

// of decodes the body of an answer with a status.
func of[T any](a answered, status int) (value T) {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	require.NoError(a.t, json.Unmarshal(a.body, &value), "%s", a.body)
	return value
}

// refused requires a problem, and returns its detail.
func (a answered) refused(status int) string {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	require.Equal(a.t, "application/problem+json", a.header.Get("Content-Type"))
	require.False(a.t, status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "")
	return of[struct{ Detail string }](a, status).Detail
}

// run is a run as clients see it.
type run struct {
	ID        string
	Status    string
	CreatedAt *time.Time `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Session   string
	Records   []tool.Record
	Totals    tool.Totals
	Pending   []tool.Action
	Final     []string
	Results   json.RawMessage
	Problem   string
}

// until polls a run until it has a status.
func (w *world) until(id, as, status string) run {
	w.t.Helper()
	var r run
	require.Eventually(w.t, func() bool {
		r = of[run](w.request("GET", "/v1/runs/"+id, as, nil), 200)
		return r.Status == status
	}, 2*time.Minute, 5*time.Millisecond, "it does not become %s", status) // the race detector makes compiling slow
	return r
}

// sent is one server-sent event as a client reads it.
type sent struct {
	id, name string
	data     string
}

// readEvents reads a stream as the HTML standard says, and calls each until it returns false or the stream ends.
func readEvents(t *testing.T, body io.Reader, each func(sent) bool) (heartbeats int) {
	t.Helper()
	var e sent
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if e != (sent{}) && !each(e) {
				return heartbeats
			}
			e = sent{}
		case field == "":
			heartbeats++
		case field == "id":
			e.id = value
		case field == "event":
			e.name = value
		case field == "data":
			e.data += value
		default:
			t.Errorf("a line %q in the stream", lines.Text())
		}
	}
	return heartbeats
}

// allEvents reads a stream to its end.
func allEvents(t *testing.T, response *http.Response) (all []sent) {
	t.Helper()
	require.Equal(t, 200, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	defer response.Body.Close()
	readEvents(t, response.Body, func(e sent) bool {
		all = append(all, e)
		return true
	})
	return all
}

func names(events []sent) (all []string) {
	for _, e := range events {
		all = append(all, e.name)
	}
	return all
}

// follow reads the events of a run until the stream ends.
func (w *world) follow(id, as string, headers ...string) []sent {
	w.t.Helper()
	all := allEvents(w.t, w.open(w.t.Context(), "GET", "/v1/runs/"+id+"/events", as, nil, headers...))
	for _, e := range all {
		w.doc.fits(w.t, "ResponsesEvent", []byte(e.data))
	}
	return all
}

func escaped(text string) string { return url.PathEscape(text) }

// anything has all tools.
type anything struct{}

func (anything) Get(name string) (registry.Entry, bool) { return registry.Entry{Name: name}, true }
func (anything) Nearest(string, int) []string           { return nil }
func (anything) Replacement(string) (string, bool)      { return "", false }
