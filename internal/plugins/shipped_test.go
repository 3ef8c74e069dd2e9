package plugins

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// shipped is a plug-in of go-sdk's folder wasm, and calls that show its purpose.
type shipped struct {
	name   string
	config map[string]string
	hosts  []string
	files  bool // it gets a folder with test.txt
	writes bool
	needs  []string // functions of the program
	// libraries are other plug-ins of the folder, by whose names the plug-in imports from them.
	libraries []string
	calls     []call
	prints    []string // lines, which Caisson has in the log and go-sdk drops
	// unlike says how Caisson differs; nil: it does not.
	unlike *difference
}

// difference is an error of Caisson's where go-sdk has another answer.
type difference struct{ says, because string }

// call is one call and what go-sdk's answer shows. It is empty for plug-ins without an answer, or whose effects show in
// other ways: in their log, output or files.
type call struct{ export, input, shows string }

// The differences.
var (
	exits = func(code string) *difference {
		return &difference{"the tool exited with code " + code, "it fails there, too, with an error of the engine below go-sdk"}
	}
	denied   = &difference{"denied: network", "the failure names the rule that is missing"}
	readOnly = &difference{"Failed to write file: Read-only file system", "the plug-in gets the error that it gets of a read-only file system elsewhere, and the failure names the rule"}
)

func run(input, shows string) []call   { return []call{{"run_test", input, shows}} }
func start(input, shows string) []call { return []call{{"_start", input, shows}} }

// plugins returns all plug-ins of go-sdk's folder wasm.
func plugins() []shipped {
	typicode := []string{"jsonplaceholder.typicode.com"}
	return []shipped{
		{name: "alloc", calls: run("", "")},
		{name: "config", config: map[string]string{"thing": "hello"}, calls: run("", `{"config": "hello"}`)},
		{name: "config", calls: run("", "<unset by host>")},
		{name: "count_vowels", calls: []call{{"count_vowels", "hello world", `"count":3,"total":3`}, {"count_vowels", "", `"count":0`},
			{"count_vowels", strings.Repeat("programme ", 500), `"count":1500`}}},
		{name: "count_vowels", config: map[string]string{"vowels": "xyz"}, calls: []call{{"count_vowels", "xylophone", `"count":2`}}},
		{name: "count_vowels_std", calls: start("hello world", "count")},
		{name: "exit", config: map[string]string{"code": "-1"}, calls: start("", "closed"), unlike: exits("4294967295")},
		{name: "exit", config: map[string]string{"code": "500"}, calls: start("", "500"), unlike: exits("500")},
		{name: "exit", config: map[string]string{"code": "0"}, calls: start("", "")},
		{name: "exit", calls: start("", "2"), unlike: exits("2")},
		{name: "fail", calls: run("", "Some error message")},
		{name: "fs", files: true, writes: true, calls: run("", "hello world!")},
		{name: "fs_std", files: true, writes: true, calls: run("", "hello world!")},
		{name: "hello", calls: run("", "Hello, world!")},
		{name: "hello_haskell", config: map[string]string{"greeting": "Howdy"}, calls: []call{{"testing", "John", "Howdy, John"}}},
		{name: "http", hosts: typicode, calls: run("", "delectus")},
		{name: "http", calls: run("", "not allowed"), unlike: denied},
		{name: "http_headers", hosts: typicode, calls: []call{{"http_get", `{"url": "https://jsonplaceholder.typicode.com/get"}`, ""}}},
		{name: "http_headers", hosts: typicode, calls: []call{{"http_get", `{"url": "https://other.example/get"}`, "not allowed"}}, unlike: denied},
		{name: "input_offset", calls: []call{{"input_offset_length", "hello world", "\v"}}},
		{name: "log", calls: run("", "")},
		{name: "noop", calls: run("", "")},
		{name: "println", calls: run("a line", ""), prints: []string{"this was printed from the plugin a line"}},
		{name: "read_write", config: map[string]string{"path": "/mnt/test.txt"}, files: true, calls: []call{{"try_read", "", "hello world!"}}},
		{name: "read_write", config: map[string]string{"path": "/mnt/test.txt"}, files: true, calls: []call{{"try_write", "hello hello!", "Failed to write file"}}, unlike: readOnly},
		{name: "read_write", config: map[string]string{"path": "/mnt/test.txt"}, files: true, writes: true, calls: []call{{"try_write", "hello hello!", ""}, {"try_read", "", "hello hello!"}}},
		{name: "replace", calls: append(run("", ""), run(strings.Repeat("a test of tests ", 200), "a wasm of wasms")...)},
		{name: "sleep", config: map[string]string{"duration": "1"}, calls: run("", "slept for 1 seconds")},
		{name: "std_command", calls: start("ben", "hello ben")},
		{name: "var", calls: run("", "")},

		{name: "host", needs: []string{"mult"}, calls: run("", "42 x 2 = 84")},
		{name: "host_memory", needs: []string{"host.to_upper"}, calls: run("Frodo", "HELLO FRODO!")},
		{name: "host_multiple", needs: []string{"hostGreenMessage", "hostPurpleMessage"}, calls: []call{{"say_green", "John", "green John"}, {"say_purple", "Jane", "purple Jane"}}},
		{name: "nested.c.instr", needs: []string{"dylibso_observe.instrument_enter", "dylibso_observe.instrument_exit", "dylibso_observe.instrument_memory_grow"}, calls: start("", ""), prints: []string{"Hello from Wasm!"}},
		{name: "main", libraries: []string{"lib"}, calls: append(run("benjamin", "Hello, BENJAMIN"), run("", "Hello, ")...)},
	}
}

// numberedPlugin is a plug-in and its place in the list, which make the name of its subtests.
type numberedPlugin struct {
	shipped
	n int
}

func (p numberedPlugin) String() string { return fmt.Sprintf("%s_%d", p.name, p.n) }

func numbered() (all []numberedPlugin) {
	for n, p := range plugins() {
		all = append(all, numberedPlugin{p, n})
	}
	return all
}

// sdkModules returns the modules in go-sdk's folder wasm, by name.
func sdkModules(t testing.TB) map[string][]byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk")
	dir, err := command.Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(string(bytes.TrimSpace(dir)), "wasm", "*.wasm"))
	require.NoError(t, err)
	modules := map[string][]byte{}
	for _, file := range files {
		modules[strings.TrimSuffix(filepath.Base(file), ".wasm")], err = os.ReadFile(file)
		require.NoError(t, err)
	}
	return modules
}

// TestShippedPluginsAnswerTheSame: the plug-ins that come with go-sdk get the same output, failure and log
// here. The list says where they do not, and why.
func TestShippedPluginsAnswerTheSame(t *testing.T) {
	modules := sdkModules(t)
	web := serve(t)
	tried := map[string]bool{}
	for _, p := range plugins() {
		tried[p.name] = true
		for _, library := range p.libraries {
			tried[library] = true
		}
	}
	for _, p := range testsize.QuickSample(numbered(), 12) {
		if !testsize.Slow && (p.name == "sleep" || p.name == "alloc") {
			continue // they take a second on a host
		}
		t.Run(p.String(), func(t *testing.T) {
			p.compare(t, func() subject { return p.subject(t, modules) }, web)
		})
	}
	assert.Len(t, modules, 27)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(modules)), slices.Collect(maps.Keys(tried)))
}

func (p shipped) subject(t testing.TB, modules map[string][]byte) subject {
	s := subject{name: p.name, module: modules[p.name], config: p.config, hosts: p.hosts, writes: p.writes, calls: p.needs}
	if p.files {
		s.files = t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(s.files, "test.txt"), []byte("hello world!"), 0o600))
	}
	if p.libraries != nil {
		s.libraries = map[string][]byte{}
	}
	for _, library := range p.libraries {
		s.libraries[library] = modules[library]
	}
	return s
}

// TestShippedPluginsAreLibraries: so do those of them that are no commands, as libraries of a plug-in that does nothing
// but call them: with what the host offers, files, requests and functions of the program.
func TestShippedPluginsAreLibraries(t *testing.T) {
	modules := sdkModules(t)
	web := serve(t)
	var compared []numberedPlugin
	for _, p := range numbered() {
		if p.calls[0].export == "_start" || p.libraries != nil || !testsize.Slow && (p.name == "sleep" || p.name == "alloc") {
			continue
		}
		compared = append(compared, p)
	}
	assert.Greater(t, len(compared), 15)
	for _, p := range testsize.QuickSample(compared, 6) { // each is compiled for both hosts
		t.Run(p.String(), func(t *testing.T) {
			var exports []string
			for _, c := range p.calls {
				exports = append(exports, c.export)
			}
			slices.Sort(exports)
			exports = slices.Compact(exports)
			results := aNumber
			if p.name == "hello_haskell" {
				results = noResult
			}
			p.compare(t, func() subject { return withNames(t, forwarderWith(results, p.subject(t, modules), exports...)) }, web)
		})
	}
}

// compare makes the calls on both hosts. Each gets a subject, with a separate folder, for all calls.
func (p shipped) compare(t *testing.T, subject func() subject, web *web) {
	here, there := subject(), subject()
	for _, c := range p.calls {
		web.requests()
		want := theirs{}.load(t, there, c.export)(c.input)
		requested := web.requests()
		require.Contains(t, fmt.Sprint(want), c.shows, "go-sdk must do something")
		got := ours{}.load(t, here, c.export)(c.input)
		switch {
		case p.unlike != nil:
			reason, _, _ := strings.Cut(want.Error, "\n") // without the stack trace
			assert.NotContains(t, got.Error, reason, "there is no difference")
			assert.Contains(t, got.Error, p.unlike.says, p.unlike.because)
		case want.Error == "":
			assert.Empty(t, got.Error)
			assert.Equal(t, want.Output, got.Output)
		default:
			assert.Contains(t, got.Error, want.Error)
			assert.Equal(t, want.Output, got.Output)
		}
		assert.Equal(t, requested, web.requests())
		require.Len(t, got.Logs, len(want.Logs)+len(p.prints), "%q", got.Logs)
		for i, message := range append(slices.Clone(want.Logs), p.prints...) {
			assert.Regexp(t, `^([a-z]+: )?`+regexp.QuoteMeta(withoutOffsets(message))+"$", withoutOffsets(got.Logs[i]), "after its level")
		}
	}
	if p.files {
		assert.Equal(t, contents(t, there.files), contents(t, here.files))
	}
}

var offset = regexp.MustCompile(`offset: \d+`)

// withoutOffsets leaves out where blocks of memory are, which is each host's own affair.
func withoutOffsets(text string) string { return offset.ReplaceAllString(text, "offset") }

func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		found[entry.Name()] = string(content)
	}
	return found
}
