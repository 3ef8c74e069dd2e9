//go:build !race

package engine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	extism "github.com/extism/go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	benchmark "github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// This file runs the plug-ins that github.com/extism/go-sdk is tested with in that very
// host, which knows nothing of the rewriting but the function that refills the meter.

// episode is one instance of a plug-in, and the calls that it gets.
type episode struct {
	config  map[string]string
	hosts   []string // that it may send requests to
	headers bool     // it sees the headers of responses
	vars    map[string][]byte
	calls   []plugCall
}

// plugCall is a call, and a part of its output if the plug-in is not rewritten.
type plugCall struct{ function, input, shows string }

// plugin is a set of linked modules, of which the last one is called.
type plugin struct {
	modules  []string
	files    access // to /mnt and below
	episodes []episode
}

// access is a plug-in's access to files.
type access int

const (
	noFiles access = iota
	readsFiles
	writesFiles
)

// plugSide is one form of a plug-in.
type plugSide struct {
	form     form
	compiled *extism.CompiledPlugin
	added    int
	files    access
	shown    bytes.Buffer // output, logs, and calls of host functions
	memories *keeper
}

func TestPluginsOfExtismBehaveTheSame(t *testing.T) {
	t.Parallel()
	extism.SetLogLevel(extism.LogLevelDebug) // of the process; the levels below would show while plug-ins start
	folder := filepath.Join(moduleFolder(t, "github.com/extism/go-sdk"), "wasm")
	sources := modulesBelow(t, folder, "none")
	web := newWeb(t)
	var total tally
	exercised := map[string]bool{}
	for _, p := range testsize.Sample(plugins(web.URL), 1) {
		t.Run(p.modules[len(p.modules)-1], func(t *testing.T) { total.add(p.compare(t, sources, web)) })
		for _, name := range p.modules {
			exercised[name+".wasm"] = true
		}
	}
	t.Log(total)
	if testsize.Whole {
		assert.ElementsMatch(t, slices.Collect(maps.Keys(sources)), slices.Collect(maps.Keys(exercised)))
	}
	assert.Len(t, sources, 27, "with the kernel, which is tested by itself, there are 28")
}

// TestKernelOfExtismBehavesTheSame: the module that holds what plug-ins and their host
// exchange is part of go-sdk, which does not let it be replaced.
func TestKernelOfExtismBehavesTheSame(t *testing.T) {
	t.Parallel()
	source := read(t, filepath.Join(moduleFolder(t, "github.com/extism/go-sdk"), "extism-runtime.wasm"))
	const first = 0x4d // where the first block lies
	m := candidate{name: "kernel", source: source, rows: numbers(), fuel: 1 << 40, script: []step{
		{"alloc", []uint64{64}}, {"store_u64", []uint64{first, 1 << 40}}, {"load_u64", []uint64{first}}, {"length", []uint64{first}},
		{"input_set", []uint64{first, 64}}, {"input_length", nil}, {"input_load_u64", []uint64{0}}, {"input_load_u8", []uint64{5}},
		{"output_set", []uint64{first, 8}}, {"output_offset", nil}, {"output_length", nil}, {"error_set", []uint64{first}}, {"error_get", nil},
		{"alloc", []uint64{1 << 20}}, {"free", []uint64{first}}, {"alloc", []uint64{16}}, {"memory_bytes", nil}, {"reset", nil}, {"length", []uint64{first}},
	}}
	total := m.compare(t)
	t.Log(total)
	assert.Greater(t, total.calls, 50)
}

// TestPluginsInCAndRustBehaveTheSame runs the benchmarks' tool as a plug-in.
func TestPluginsInCAndRustBehaveTheSame(t *testing.T) {
	t.Parallel()
	call := benchmark.NewCall(10_000)
	calls := []plugCall{{"call", string(call.Input), `"calls"`}, {"call", string(call.Input), `"calls"`}, {"call", "[", ""}}
	web := newWeb(t)
	var total tally
	for _, language := range []benchmark.Language{benchmark.C, benchmark.Rust} {
		source, err := benchmark.Plugin(t.Context(), language, "")
		require.NoError(t, err)
		p := plugin{modules: []string{"tool"}, episodes: []episode{{calls: calls}}}
		t.Run(string(language), func(t *testing.T) { total.add(p.compare(t, map[string][]byte{"tool.wasm": source}, web)) })
	}
	t.Log(total)
	assert.Equal(t, 2, total.modules)
}

// compare runs the episodes on all sides.
func (p plugin) compare(t *testing.T, sources map[string][]byte, web *web) tally {
	count := tally{modules: len(p.modules)}
	var sides []*plugSide
	for _, f := range forms() {
		s := &plugSide{form: f, files: p.files}
		s.compile(t, p, sources, web)
		defer func() { assert.NoError(t, s.compiled.Close(context.WithoutCancel(t.Context()))) }()
		sides = append(sides, s)
	}
	for _, e := range p.episodes {
		texts := make([][]string, len(sides))
		for i, s := range sides {
			texts[i] = s.play(t, e, web)
		}
		last := len(sides) - 1
		for n, call := range e.calls {
			assert.Contains(t, texts[last][n], call.shows, "the original must do something")
		}
		for i, s := range sides[:last] {
			assert.Equal(t, texts[last], texts[i], s.form.name)
			assert.Empty(t, sides[last].memories.unlike(s.memories), s.form.name)
		}
		count.instances++
		count.calls += len(e.calls)
	}
	return count
}

// compile compiles the modules of a plug-in in the side's form.
func (s *plugSide) compile(t *testing.T, p plugin, sources map[string][]byte, web *web) {
	var modules []extism.Wasm
	for i, name := range p.modules {
		source := web.redirected(sources[name+".wasm"])
		description := inspect(t, source)
		s.added = addedFrom(description)
		prepared, err := s.form.prepare(source)
		require.NoError(t, err)
		if i == len(p.modules)-1 {
			name = "main"
		} else if s.form.rewritten {
			prepared, err = withNames(prepared)
			require.NoError(t, err)
		}
		modules = append(modules, extism.WasmData{Data: prepared, Name: name})
	}
	config := extism.PluginConfig{EnableWasi: true, RuntimeConfig: runtimeConfig().WithMemoryLimitPages(mostMemory >> 16)}
	var err error
	s.compiled, err = extism.NewCompiledPlugin(t.Context(), extism.Manifest{Wasm: modules}, config, s.functions())
	require.NoError(t, err, s.form.name)
}

// withNames adds a name section with the names under which functions are exported: Extism links
// modules by the names of that section, where it means those of exports.
func withNames(source []byte) ([]byte, error) {
	description, err := wasm.Inspect(source)
	if err != nil {
		return nil, err
	}
	exported := map[uint32]string{}
	for _, export := range description.Exports {
		if export.Kind == wasm.ExternFunction {
			exported[export.Index] = export.Name
		}
	}
	names := leb(len(exported))
	for _, index := range slices.Sorted(maps.Keys(exported)) {
		names = join(names, leb(int(index)), name(exported[index]))
	}
	return join(source, section(0, join(name("name"), []byte{1}, leb(len(names)), names)...)), nil
}

// play performs an episode and returns the output of each call.
func (s *plugSide) play(t *testing.T, e episode, web *web) []string {
	s.memories = &keeper{}
	module := wazero.NewModuleConfig().WithStdout(&s.shown).WithStderr(&s.shown).WithArgs("plugin")
	if s.files != noFiles {
		folder := writeFiles(t, map[string]string{"test.txt": "hello world!"})
		module = module.WithFSConfig(mount(folder, "/mnt", s.files == readsFiles))
	}
	ctx := experimental.WithMemoryAllocator(t.Context(), s.memories)
	instance, err := s.compiled.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: module})
	require.NoError(t, err, s.form.name)
	defer func() { assert.NoError(t, instance.Close(context.WithoutCancel(t.Context()))) }()
	instance.SetLogger(func(level extism.LogLevel, message string) { fmt.Fprintf(&s.shown, "%s: %s\n", level, message) })
	instance.Config, instance.AllowedHosts, instance.Var = e.config, e.hosts, maps.Clone(e.vars)
	if instance.Var == nil {
		instance.Var = map[string][]byte{}
	}
	if e.headers {
		instance.LastResponseHeaders = map[string]string{}
	}
	var texts []string
	for _, call := range e.calls {
		s.shown.Reset()
		web.seen.Reset()
		code, output, err := instance.CallWithContext(t.Context(), call.function, []byte(call.input))
		text := fmt.Sprintf("%s: code %d\noutput: %s\n", call.function, code, output)
		if err != nil {
			text += "error: " + failureOf(err, s.added) + "\n"
		}
		text += fmt.Sprintf("vars: %q\nstatus: %d %v\nrequests: %s\n%s", instance.Var, instance.LastStatusCode, instance.LastResponseHeaders, &web.seen, &s.shown)
		texts = append(texts, text)
	}
	return texts
}

// functions returns the host functions that the plug-ins import in addition to Extism's.
func (s *plugSide) functions() []extism.HostFunction {
	const pointer, i32, i64 = extism.ValueTypePTR, extism.ValueTypeI32, extism.ValueTypeI64
	var functions []extism.HostFunction
	offer := func(module, name string, params, results []extism.ValueType, do func(p *extism.CurrentPlugin, stack []uint64)) {
		f := extism.NewHostFunctionWithStack(name, func(_ context.Context, p *extism.CurrentPlugin, stack []uint64) { do(p, stack) }, params, results)
		if module != "" {
			f.SetNamespace(module)
		}
		functions = append(functions, f)
	}
	zero := func(_ *extism.CurrentPlugin, stack []uint64) { stack[0] = 0 }
	offer(wasm.MeterModule, wasm.MeterRefill, []extism.ValueType{i64}, []extism.ValueType{i64}, func(_ *extism.CurrentPlugin, stack []uint64) { stack[0] = mostSlice })
	offer(wasm.ForkModule, wasm.ForkReached, []extism.ValueType{i32}, []extism.ValueType{i32}, zero)
	offer(wasm.ForkModule, wasm.ForkResume, nil, []extism.ValueType{i32}, zero)
	offer("", "mult", []extism.ValueType{pointer, pointer}, []extism.ValueType{pointer}, func(_ *extism.CurrentPlugin, stack []uint64) { stack[0] *= stack[1] })
	for name, change := range map[string]func(string) string{
		"hostGreenMessage":  func(text string) string { return "green " + text },
		"hostPurpleMessage": func(text string) string { return "purple " + text },
		"to_upper":          strings.ToUpper,
	} {
		module := ""
		if name == "to_upper" {
			module = "host"
		}
		offer(module, name, []extism.ValueType{pointer}, []extism.ValueType{pointer}, func(p *extism.CurrentPlugin, stack []uint64) { stack[0] = changed(p, stack[0], change) })
	}
	for _, name := range []string{"instrument_enter", "instrument_exit", "instrument_memory_grow"} {
		offer("dylibso_observe", name, []extism.ValueType{i32}, nil, func(_ *extism.CurrentPlugin, stack []uint64) { fmt.Fprintln(&s.shown, name, uint32(stack[0])) })
	}
	return functions
}

// changed replaces a text in the plug-in's memory. It panics on failure, as an Extism host function must.
func changed(p *extism.CurrentPlugin, at uint64, change func(string) string) uint64 {
	text, err := p.ReadString(at)
	if err != nil {
		panic(err)
	}
	at, err = p.WriteString(change(text))
	if err != nil {
		panic(err)
	}
	return at
}

// web is the one server that plug-ins reach, whatever address they were compiled with.
type web struct {
	*httptest.Server
	seen bytes.Buffer // requests
}

func newWeb(t *testing.T) *web {
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		fmt.Fprintf(&w.seen, "%s %s %v\n", request.Method, request.URL, request.Header)
		response.Header()["Date"] = nil // it would differ between sides
		response.Header().Set("Content-Type", "application/json")
		fmt.Fprint(response, `{"title": "delectus"}`)
	}))
	t.Cleanup(w.Close)
	return w
}

// redirected returns a module whose one address, which is a part of its data, is the server's.
func (w *web) redirected(source []byte) []byte {
	const compiled = "https://jsonplaceholder.typicode.com/todos/1"
	address := w.URL + "/" + strings.Repeat("x", len(compiled)-len(w.URL)-1)
	return bytes.ReplaceAll(source, []byte(compiled), []byte(address))
}

// plugins returns all plug-ins of github.com/extism/go-sdk's folder wasm, each with calls that use its main function.
func plugins(address string) []plugin {
	one := func(calls ...plugCall) []episode { return []episode{{calls: calls}} }
	run := func(input, shows string) plugCall { return plugCall{"run_test", input, shows} }
	start := func(input, shows string) plugCall { return plugCall{"_start", input, shows} }
	local := []string{"127.0.0.1"}
	get := plugCall{"http_get", `{"url": "` + address + `/get"}`, "application/json"}
	refused := plugCall{"http_get", `{"url": "` + address + `/get"}`, "is not allowed"}
	return []plugin{
		{modules: []string{"config"}, episodes: []episode{
			{config: map[string]string{"thing": "hello"}, calls: []plugCall{run("", `{"config": "hello"}`)}},
			{calls: []plugCall{run("", "<unset by host>")}},
		}},
		// It calls its host millions of times.
		{modules: []string{"alloc"}, episodes: one(run("", "code 0"))},
		{modules: []string{"count_vowels"}, episodes: []episode{
			{calls: []plugCall{{"count_vowels", "hello world", `"count":3,"total":3`}, {"count_vowels", "aaaaaa", `"count":6,"total":9`},
				{"count_vowels", "", `"count":0`}, {"count_vowels", strings.Repeat("programme ", 500), `"count":1500`}}},
			{config: map[string]string{"vowels": "xyz"}, calls: []plugCall{{"count_vowels", "xylophone", `"count":2`}}},
		}},
		{modules: []string{"count_vowels_std"}, episodes: one(start("hello world", "count"))},
		{modules: []string{"exit"}, episodes: []episode{
			{config: map[string]string{"code": "-1"}, calls: []plugCall{start("", "code 4294967295")}},
			{config: map[string]string{"code": "500"}, calls: []plugCall{start("", "code 500")}},
			{config: map[string]string{"code": "abc"}, calls: []plugCall{start("", "code 1")}},
			{calls: []plugCall{start("", "code 2")}},
		}},
		{modules: []string{"fail"}, episodes: one(run("", "Some error message"))},
		{modules: []string{"fs"}, files: writesFiles, episodes: one(run("", "hello world!"))},
		{modules: []string{"fs_std"}, files: writesFiles, episodes: one(run("", "hello world!"))},
		{modules: []string{"hello"}, episodes: one(run("", "Hello, world!"))},
		{modules: []string{"hello_haskell"}, episodes: []episode{
			{config: map[string]string{"greeting": "Howdy"}, calls: []plugCall{{"testing", "John", "Howdy, John"}, {"testing", "Jane", "Howdy, Jane"}}},
		}},
		{modules: []string{"host"}, episodes: one(run("", "42 x 2 = 84"))},
		{modules: []string{"host_memory"}, episodes: one(run("Frodo", "HELLO FRODO!"))},
		{modules: []string{"host_multiple"}, episodes: one(plugCall{"say_green", "John", "green"}, plugCall{"say_purple", "Jane", "purple"})},
		{modules: []string{"http"}, episodes: []episode{
			{hosts: local, calls: []plugCall{run("", "delectus")}},
			{calls: []plugCall{run("", "is not allowed")}},
		}},
		{modules: []string{"http_headers"}, episodes: []episode{
			{hosts: local, headers: true, calls: []plugCall{get}},
			{calls: []plugCall{refused}},
		}},
		{modules: []string{"input_offset"}, episodes: one(plugCall{"input_offset_length", "hello world", "output: \v"})},
		{modules: []string{"log"}, episodes: one(run("", "WARN: this is a warning log"))},
		{modules: []string{"lib", "main"}, episodes: one(run("benjamin", "Hello, BENJAMIN"), run("again", "Hello, AGAIN"))},
		{modules: []string{"nested.c.instr"}, episodes: one(start("", "instrument_enter"))},
		{modules: []string{"noop"}, episodes: one(run("", "code 0"))},
		{modules: []string{"println"}, episodes: one(run("a line", "a line"))},
		{modules: []string{"read_write"}, files: readsFiles, episodes: []episode{
			{config: map[string]string{"path": "/mnt/test.txt"}, calls: []plugCall{
				{"try_read", "", "hello world!"}, {"try_write", "hello hello!", "Failed to write file"}}},
		}},
		{modules: []string{"replace"}, episodes: one(run("", "code 0"), run(strings.Repeat("a test of tests ", 200), "a wasm of wasms"))},
		{modules: []string{"sleep"}, episodes: []episode{
			{config: map[string]string{"duration": "2"}, calls: []plugCall{run("", "slept for 2 seconds")}},
		}},
		{modules: []string{"std_command"}, episodes: one(start("ben", "hello ben"))},
		{modules: []string{"var"}, episodes: []episode{
			{vars: map[string][]byte{"a": {10, 0, 0, 0}}, calls: []plugCall{run("", `"\x14\x00\x00\x00"`), run("", `"(\x00\x00\x00"`)}},
		}},
	}
}
