package plugins

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

var (
	compiled string           // the folder of compiled code, which later runs of the tests find
	shared   *runtime.Runtime // by all tests
)

func TestMain(m *testing.M) {
	ctx := context.Background()
	var err error
	if _, compiled, err = guests.CompiledCode(); err == nil {
		shared, err = runtime.New(ctx, options())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	extism.SetLogLevel(extism.LogLevelInfo) // of the process, and what Caisson keeps
	code := m.Run()
	if err := shared.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// nestedInstrumented is go-sdk's nested.c.instr.wasm, which takes more to compile than is allowed in this process.
const nestedInstrumented = "3d8b615ab7ed5373bdebc435fa32cd41376634de77a9b971251c2cd109bcfc99"

// options allow what the tests' calls need, such as outputs of 8 MiB.
func options() runtime.Options {
	return runtime.Options{
		CacheDir: compiled, HostFunctions: functionsOfOurs(), TrustedModules: []string{nestedInstrumented},
		Limits: runtime.Limits{Timeout: time.Minute, Memory: 512 << 20, Output: 64 << 20, Stderr: 16 << 20},
	}
}

// subject is a plug-in and what both hosts give it.
type subject struct {
	name   string
	module []byte
	// libraries are modules by the names under which the plug-in imports from them.
	libraries map[string][]byte
	config    map[string]string
	hosts     []string // that it may send requests to; all names lead to the tests' server
	files     string   // the host's folder that is its /mnt
	writes    bool     // whether it may write there
	calls     []string // functions of the program that it may call, by their names in permissions
	// granted are those of calls that the operator grants. Nil means all.
	granted  []string
	snapshot string // of the manifest's behavior; empty for its default
	limits   string // of the manifest, such as "{timeout: 1s}"
	measured bool   // calls are not recorded, which takes memory
}

// answer is what the caller of a plug-in gets.
type answer struct {
	Output string
	Error  string // empty for a call that succeeded
	Logs   []string
}

// ours is Caisson.
type ours struct{}

// load returns a function that calls an export, each time in a new instance.
func (ours) load(t testing.TB, s subject, export string) func(input string) answer {
	t.Helper()
	call := caisson(t, s, export)
	return func(input string) answer {
		outcome, err := call(input)
		a := answer{Output: outcome.Result.Output, Error: outcome.Result.Error, Logs: lines(outcome.Log)}
		if !outcome.Result.Success && a.Error == "" {
			a.Error = "failed without a word"
		}
		if err != nil {
			require.NotEmpty(t, a.Error, "%v", err)
		}
		return a
	}
}

// caisson loads an export of a plug-in as a tool, and returns a function that calls it.
func caisson(t testing.TB, s subject, export string) func(input string) (tool.Outcome, error) {
	t.Helper()
	loaded, err := loadTool(t, s, export)
	require.NoError(t, err)
	return func(input string) (tool.Outcome, error) {
		outcome, err := loaded.Invoke(t.Context(), tool.Invocation{CallID: "the-call", Tool: "plugin", Arguments: argument(t, input)})
		replayed(t, loaded, outcome)
		return outcome, err
	}
}

// replayed checks that a call has the same result and the same fuel when it is replayed, if it can be.
func replayed(t testing.TB, loaded *runtime.Tool, outcome tool.Outcome) {
	t.Helper()
	if outcome.Inputs == nil {
		return
	}
	again, err := loaded.Invoke(t.Context(), tool.Invocation{CallID: "the-replay", Tool: "plugin", Replay: outcome.Inputs})
	if _, refused := errors.AsType[*replay.Refusal](err); refused {
		return
	}
	if assert.NoError(t, err) {
		assert.Empty(t, replay.Compare(outcome.Result, again.Result, outcome.Usage.Fuel, again.Usage.Fuel))
	}
}

// argument returns the arguments of a call. What a model may write is bounded; what a program passes is not.
func argument(t testing.TB, input string) tool.Arguments {
	t.Helper()
	none, err := tool.ParseArguments("{}")
	require.NoError(t, err)
	return none.With("input", encoded(t, input))
}

func encoded(t testing.TB, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}

// loadTool loads an export of a plug-in as a tool of the shared runtime.
func loadTool(t testing.TB, s subject, export string) (*runtime.Tool, error) {
	t.Helper()
	return loadIn(t, shared, s, export)
}

func loadIn(t testing.TB, r *runtime.Runtime, s subject, export string) (*runtime.Tool, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), s.module, 0o600))
	for name, library := range s.libraries {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".wasm"), library, 0o600))
	}
	file := filepath.Join(dir, "tool.json")
	require.NoError(t, os.WriteFile(file, []byte(s.manifest(t, export)), 0o600))
	m, err := manifests.Load(file)
	require.NoError(t, err)
	_, benched := t.(*testing.B)
	grants := manifests.Grants{RecordInputs: !benched && !s.measured}
	for _, name := range s.hosts {
		grants.Network = append(grants.Network, grant(name))
	}
	granted := s.calls
	if s.granted != nil {
		granted = s.granted
	}
	for _, name := range granted {
		grants.Functions = append(grants.Functions, manifests.NameGrant{Name: name})
	}
	if s.files != "" {
		access := manifests.AccessRead
		if s.writes {
			access = manifests.AccessReadWrite
		}
		grants.Files = []manifests.FileGrant{manifests.GrantDirectory("/mnt", s.files, access)}
	}
	loaded, err := r.Load(t.Context(), m, grants)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { assert.NoError(t, loaded.Close(context.WithoutCancel(t.Context()))) })
	return loaded, nil
}

// manifest returns a manifest for an export.
func (s subject) manifest(t testing.TB, export string) string {
	t.Helper()
	var network []map[string]any
	for _, name := range s.hosts {
		network = append(network, map[string]any{"host": name, "methods": []string{"GET", "POST"}})
	}
	permissions := map[string]any{}
	if network != nil {
		permissions["network"] = network
	}
	if s.calls != nil {
		permissions["functions"] = s.calls
	}
	if s.files != "" {
		access := "read"
		if s.writes {
			access = "read-write"
		}
		permissions["files"] = []map[string]any{{"path": "/mnt", "access": access}}
	}
	module := map[string]any{"path": "plugin.wasm", "abi": "extism", "entry": export, "stdin": "{input}", "stdout": "text"}
	if s.config != nil {
		module["config"] = s.config
	}
	if s.libraries != nil {
		files := map[string]string{}
		for name := range s.libraries {
			files[name] = name + ".wasm"
		}
		module["libraries"] = files
	}
	limits := json.RawMessage(`{"timeout": "60s", "memory": "512MiB", "output": "64MiB", "stderr": "16MiB"}`)
	if s.limits != "" {
		limits = json.RawMessage(s.limits)
	}
	behavior := map[string]any{}
	if s.snapshot != "" {
		behavior["snapshot"] = s.snapshot
	}
	return string(encoded(t, map[string]any{
		"schema": "caisson/v1", "name": "plugin", "description": "A plug-in of the tests.", "module": module, "limits": limits,
		"parameters":  map[string]any{"type": "object", "properties": map[string]any{"input": map[string]any{"type": "string"}}, "required": []string{"input"}},
		"permissions": permissions, "behavior": behavior,
	}))
}

// theirs is github.com/extism/go-sdk, with its defaults. If reused, all calls of a subject run in one instance.
type theirs struct{ reused bool }

// load is like that of ours.
func (h theirs) load(t testing.TB, s subject, export string) func(input string) answer {
	t.Helper()
	plugin := compileTheirs(t, s)
	var kept *extism.Plugin
	return func(input string) answer {
		var a answer
		instance := kept
		if instance == nil {
			instance = instanceOf(t, plugin, s)
			if h.reused {
				kept = instance
			}
		}
		instance.SetLogger(func(level extism.LogLevel, message string) {
			if !strings.HasPrefix(message, "Calling ") && !strings.HasPrefix(message, "Initializ") { // its own
				a.Logs = append(a.Logs, message)
			}
		})
		code, output, err := instance.CallWithContext(t.Context(), export, []byte(input))
		a.Output = string(output)
		switch {
		case err != nil:
			a.Error = err.Error()
		case code != 0:
			a.Error = fmt.Sprintf("code %d", code)
		}
		if !h.reused {
			assert.NoError(t, instance.Close(context.WithoutCancel(t.Context())))
		}
		return a
	}
}

func instanceOf(t testing.TB, plugin *extism.CompiledPlugin, s subject) *extism.Plugin {
	t.Helper()
	module := wazero.NewModuleConfig().WithSysNanosleep().WithSysNanotime().WithSysWalltime()
	if s.files != "" {
		folder := wazero.NewFSConfig().WithReadOnlyDirMount(s.files, "/mnt")
		if s.writes {
			folder = wazero.NewFSConfig().WithDirMount(s.files, "/mnt")
		}
		module = module.WithFSConfig(folder)
	}
	instance, err := plugin.Instance(t.Context(), extism.PluginInstanceConfig{ModuleConfig: module})
	require.NoError(t, err)
	return instance
}

var (
	cacheOnce sync.Once
	cache     wazero.CompilationCache
	cacheErr  error
)

func compileTheirs(t testing.TB, s subject) *extism.CompiledPlugin {
	t.Helper()
	cacheOnce.Do(func() { cache, cacheErr = wazero.NewCompilationCacheWithDir(filepath.Join(compiled, "..", "extism")) })
	require.NoError(t, cacheErr)
	manifest := extism.Manifest{Config: maps.Clone(s.config), AllowedHosts: s.hosts}
	for name, library := range s.libraries {
		manifest.Wasm = append(manifest.Wasm, extism.WasmData{Data: library, Name: name})
	}
	manifest.Wasm = append(manifest.Wasm, extism.WasmData{Data: s.module, Name: "main"})
	config := extism.PluginConfig{EnableWasi: true, EnableHttpResponseHeaders: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache)}
	plugin, err := extism.NewCompiledPlugin(t.Context(), manifest, config, functionsOfTheirs())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plugin.Close(context.WithoutCancel(t.Context()))) })
	return plugin
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// web is a server to which every name leads, over TLS, from both hosts.
type web struct {
	address, authorities string

	mu   sync.Mutex
	seen []string // requests
}

var theWeb *web

// names are those that the server's certificate is for.
var names = []string{"api.example.com", "elsewhere.example", "jsonplaceholder.typicode.com"}

// serve starts the server, and has the standard library's client, which go-sdk uses, find it under every name.
func serve(t testing.TB) *web {
	t.Helper()
	w := &web{authorities: filepath.Join(t.TempDir(), "authorities.pem")}
	server := httptest.NewUnstartedServer(w)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	server.StartTLS()
	w.address = server.Listener.Addr().String()
	inText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	require.NoError(t, os.WriteFile(w.authorities, inText, 0o600))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(inText)
	before := http.DefaultClient.Transport
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, w.address)
		},
	}
	http.DefaultClient.Transport, theWeb = transport, w
	t.Cleanup(func() {
		http.DefaultClient.Transport, theWeb = before, nil
		transport.CloseIdleConnections()
		server.Close()
	})
	return w
}

func (w *web) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	w.mu.Lock()
	w.seen = append(w.seen, fmt.Sprintf("%s %s%s", request.Method, request.Host, request.URL))
	w.mu.Unlock()
	response.Header()["Date"] = nil // it would differ between the hosts
	switch request.URL.Path {
	case "/missing":
		http.Error(response, "no such page", http.StatusNotFound)
	case "/empty":
		response.WriteHeader(http.StatusNoContent)
	case "/elsewhere":
		http.Redirect(response, request, "https://elsewhere.example/secret", http.StatusFound)
	case "/secret":
		fmt.Fprint(response, "the secret")
	default:
		response.Header().Set("Content-Type", "application/json")
		fmt.Fprint(response, `{"title": "delectus"}`)
	}
}

// requests returns what arrived since the last time it was asked.
func (w *web) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := slices.Clone(w.seen)
	w.seen = nil
	return seen
}

// grant returns an operator's grant of a host, which leads to the server.
func grant(name string) manifests.NetworkGrant {
	return manifests.NetworkGrant{
		Binding:           manifests.Binding{Origin: "caisson.yaml:1"},
		NetworkPermission: manifests.NetworkPermission{Host: name, Methods: []string{"GET", "POST"}, Schemes: []string{"https"}, Paths: []string{"/"}},
		Connect:           theWeb.address, Authorities: theWeb.authorities,
	}
}

// logger is a logger of go-sdk that only counts.
func logger(logged func()) func(extism.LogLevel, string) {
	return func(extism.LogLevel, string) { logged() }
}

func contextFor(t testing.TB, duration time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), duration)
}
