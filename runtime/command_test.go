package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// unfit is a module that is not a command, as a compiler would have made it.
type unfit struct {
	imports   []string // functions without parameters, as "module name"
	memory    bool     // of "env"
	export    string
	producers []string // "language NAME" or "processed-by NAME"
	tag       bool     // has a tag section, which only exceptions need
	body      string
}

func (u unfit) module() string {
	imports := ""
	for _, i := range u.imports {
		from, name, _ := strings.Cut(i, " ")
		imports += vector(from) + vector(name) + "\x00\x00"
	}
	own := number(len(u.imports))
	count := len(u.imports)
	if u.memory {
		imports, count = imports+vector("env")+vector("memory")+"\x02\x00\x01", count+1
	}
	module := magic
	if len(u.producers) > 0 {
		fields := ""
		for _, p := range u.producers {
			field, name, _ := strings.Cut(p, " ")
			fields += vector(field) + "\x01" + vector(name) + vector("1.0")
		}
		module += section(0, vector("producers")+number(len(u.producers))+fields)
	}
	module += section(1, "\x01\x60\x00\x00") + section(2, number(count)+imports) + section(3, "\x01\x00")
	if u.tag {
		module += section(13, "\x01\x00\x00")
	}
	if u.export != "" {
		module += section(7, "\x01"+vector(u.export)+"\x00"+own)
	}
	return module + section(10, "\x01"+vector("\x00"+u.body+"\x0b"))
}

// refusal returns the two parts of the error for a module, which must be the same wherever it comes
// from.
func refusal(t *testing.T, module string) (problem, fix string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), []byte(module), 0o600))
	m := manifestIn(t, dir, "guest", "")
	_, err := InspectModule(m)
	require.ErrorIs(t, err, ErrModule)
	prepared := load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Prepare(t.Context())
	require.EqualError(t, prepared, err.Error())
	var parts interface {
		error
		Problem() (text, fix string)
	}
	require.ErrorAs(t, prepared, &parts)
	problem, fix = parts.Problem()
	assert.Equal(t, err.Error(), strings.TrimSuffix(problem+"; "+fix, "; "))
	return problem, fix
}

// TestAllThatIsMissingIsOneMessage: a developer who corrects the first finding should not meet the next one after
// another build.
func TestAllThatIsMissingIsOneMessage(t *testing.T) {
	problem, fix := refusal(t, unfit{
		imports: []string{"env a", "env b", "wasi_snapshot_preview1 fd_close", "caisson:net@1 request", "env a", "env c", "env d", "env e", "env f", "env g", "other x"},
		memory:  true,
	}.module())
	assert.Equal(t, `module cannot be used: guest.wasm imports the functions "a", "b", "c", "d", "e" and 2 more of "env", the function "x" of "other", the memory "memory" of "env", which this runtime does not offer; `+
		`it imports the function "fd_close" of "wasi_snapshot_preview1", the function "request" of "caisson:net@1" with the wrong type; `+
		`it imports the function "request" of "caisson:net@1", but its manifest does not ask for permissions.network; `+
		`it exports no _start function, so it is not a WASI command`, problem)
	for _, part := range []string{"--import-memory", "wasip1", "ABI.md", "request the permission"} {
		assert.Contains(t, fix, part)
	}

	problem, _ = refusal(t, unfit{imports: []string{" a"}, export: "_start"}.module())
	assert.Equal(t, `module cannot be used: guest.wasm imports the function "a" of "", which this runtime does not offer`, problem)
	problem, fix = refusal(t, unfit{export: "main"}.module())
	assert.Equal(t, "module cannot be used: guest.wasm exports no _start function, so it is not a WASI command", problem)
	assert.Contains(t, fix, "wasip1")
}

// TestMessagesAboutImportsAreBounded: a module may have thousands, with long names.
func TestMessagesAboutImportsAreBounded(t *testing.T) {
	var imports []string
	for i := range 1000 {
		imports = append(imports, fmt.Sprintf("m%d%s %d%s", i%20, strings.Repeat("m", 1000), i, strings.Repeat("é", 500)))
	}
	problem, fix := refusal(t, unfit{imports: imports, export: "_start"}.module())
	assert.Less(t, len(problem)+len(fix), 4000)
	assert.Contains(t, problem, "and 45 more of")
	assert.Contains(t, problem, "and more of 16 other modules")
	assert.NotContains(t, problem, "\uFFFD")
}

// TestModulesAreCheckedBeforeTheyAreCompiled: the compiler would refuse this module, too, but may take long for other
// ones.
func TestModulesAreCheckedBeforeTheyAreCompiled(t *testing.T) {
	const labels = 50_001
	body := "\x41\x00\x0e" + number(labels-1) + strings.Repeat("\x00", labels) // i32.const 0, br_table
	for _, u := range []unfit{
		{imports: []string{"env missing"}, export: "_start", body: body},
		{export: "main", body: body},
	} {
		m := named(t, "guest", u.module(), "")
		err := load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Prepare(t.Context())
		require.ErrorIs(t, err, ErrModule)
		require.NotErrorIs(t, err, wasm.ErrLimit)
	}
	// Control: a command of the same body gets as far as the compiler.
	err := load(t, newRuntime(t, Options{}), named(t, "guest", unfit{export: "_start", body: body}.module(), ""), manifests.Grants{}).Prepare(t.Context())
	require.ErrorIs(t, err, wasm.ErrLimit)
}

// TestEveryManifestOfAModuleIsChecked: two tools may have one module, and only one of them may request the permission
// for its imports.
func TestEveryManifestOfAModuleIsChecked(t *testing.T) {
	r := newRuntime(t, Options{})
	asks := importing(t, "caisson:net@1", "request", 4, 0x7e, wantsNetwork)
	silent := importing(t, "caisson:net@1", "request", 4, 0x7e, "")
	require.NoError(t, load(t, r, asks, manifests.Grants{}).Prepare(t.Context()))
	for range 2 {
		assert.ErrorContains(t, load(t, r, silent, manifests.Grants{}).Prepare(t.Context()), "does not ask for permissions.network")
		require.NoError(t, load(t, r, asks, manifests.Grants{}).Prepare(t.Context()))
	}
}

// TestAdviceIsForTheToolchain: the fix depends on the compiler of the module.
func TestAdviceIsForTheToolchain(t *testing.T) {
	rust, cpp, clang, golang := []string{"language Rust", "processed-by rustc"}, []string{"language C_plus_plus_14", "processed-by Debian clang"},
		[]string{"processed-by clang_21.1.4-wasi-sdk"}, []string{"language Go", "processed-by Go cmd/compile"}
	rustWithC := []string{"language C11", "language Rust", "processed-by clang_21.1.4-wasi-sdk", "processed-by rustc"}
	for name, c := range map[string]struct {
		unfit
		want string
		not  string
	}{
		"wasm-bindgen":                        {unfit: unfit{imports: []string{"wbg __wbg_new"}, producers: rust}, want: "wasm-bindgen"},
		"Go for JavaScript":                   {unfit: unfit{imports: []string{"gojs runtime.wasmExit"}, producers: golang}, want: "GOOS=wasip1"},
		"preview 2":                           {unfit: unfit{imports: []string{"wasi:cli/stdout@0.2.0 get-stdout"}}, want: "preview 1"},
		"a draft of WASI":                     {unfit: unfit{imports: []string{"wasi_unstable fd_clone"}, export: "_start"}, want: "draft of WASI"},
		"threads":                             {unfit: unfit{imports: []string{"wasi thread-spawn"}, memory: true, export: "_start"}, want: "without -pthread"},
		"WASIX":                               {unfit: unfit{imports: []string{"wasix_32v1 proc_fork"}, export: "_start"}, want: "WASIX"},
		"sockets of WasmEdge":                 {unfit: unfit{imports: []string{"wasi_snapshot_preview1 sock_open"}, export: "_start"}, want: "caisson:net@1", not: "offers the functions of"},
		"sockets of WasmEdge, mistyped":       {unfit: unfit{imports: []string{"wasi_snapshot_preview1 sock_accept"}, export: "_start"}, want: "caisson:net@1", not: "declare them"},
		"a proposal to WASI":                  {unfit: unfit{imports: []string{"wasi_ephemeral_nn load"}, export: "_start"}, want: "a proposal to WASI"},
		"a function that WASI does not have":  {unfit: unfit{imports: []string{"wasi_snapshot_preview1 proc_fork"}, export: "_start"}, want: "neither among the functions of WASI preview 1", not: "offers the functions of"},
		"a plug-in without its entry":         {unfit: unfit{imports: []string{"extism:host/env reset"}}, want: "as entry"},
		"a plug-in for a certain host":        {unfit: unfit{imports: []string{"extism:host/user lookup"}}, want: "host of Extism plug-ins"},
		"Node.js":                             {unfit: unfit{imports: []string{"env memcmp", "env napi_create_object"}}, want: "Node.js"},
		"Emscripten":                          {unfit: unfit{imports: []string{"env emscripten_resize_heap"}}, want: "-sSTANDALONE_WASM"},
		"Emscripten, minified":                {unfit: unfit{imports: []string{"a a", "a b", "a Za"}}, want: "-sSTANDALONE_WASM"},
		"C++ that throws":                     {unfit: unfit{imports: []string{"env __cxa_throw"}, producers: cpp, export: "_start"}, want: "-fno-exceptions"},
		"an undefined function":               {unfit: unfit{imports: []string{"env missing"}, export: "_start"}, want: "--allow-undefined", not: "wasip1"},
		"an undefined function of a library":  {unfit: unfit{imports: []string{"env missing"}, producers: rust}, want: "src/main.rs"},
		"a memory":                            {unfit: unfit{memory: true, export: "_start"}, want: "--import-memory"},
		"an unknown host":                     {unfit: unfit{imports: []string{"game draw"}, export: "_start"}, want: "wasi_snapshot_preview1"},
		"a library in Rust":                   {unfit: unfit{producers: rustWithC}, want: "src/main.rs"},
		"a library in C":                      {unfit: unfit{producers: clang}, want: "-mexec-model=reactor"},
		"a library in Go":                     {unfit: unfit{producers: golang}, want: "-buildmode=c-shared"},
		"a library":                           {unfit: unfit{}, want: "GOOS=wasip1"},
		"exceptions in Rust":                  {unfit: unfit{tag: true, producers: rustWithC}, want: `panic = "abort"`, not: "Kotlin"},
		"exceptions in C++":                   {unfit: unfit{tag: true, producers: cpp}, want: "-fno-exceptions", not: "Cargo"},
		"exceptions in C or C++":              {unfit: unfit{tag: true, producers: clang}, want: "setjmp", not: "Cargo"},
		"exceptions":                          {unfit: unfit{tag: true}, want: "Kotlin"},
		"exceptions in the code alone":        {unfit: unfit{export: "_start", producers: cpp, body: "\x06\x40\x0b"}, want: "-fno-exceptions"}, // try
		"atomic operations":                   {unfit: unfit{export: "_start", body: "\xfe\x03\x00"}, want: "-pthread"},
		"objects that the engine looks after": {unfit: unfit{export: "_start", body: "\xfb\x00\x00\x1a"}, want: "Kotlin"}, // struct.new
	} {
		_, fix := refusal(t, c.module())
		assert.Contains(t, fix, c.want, name)
		if c.not != "" {
			assert.NotContains(t, fix, c.not, name)
		}
	}
	_, fix := refusal(t, "\x00asm\x0d\x00\x01\x00")
	assert.Contains(t, fix, "without the step that makes a component")
}

// TestAdviceForProposals: a module that needs a feature that this runtime does not have is refused with the feature's
// name and the way to build it without.
func TestAdviceForProposals(t *testing.T) {
	head := magic + section(1, "\x01\x60\x00\x00")
	withMemory := func(memory string) string { return head + section(5, memory) }
	withBody := func(body string) string {
		return head + section(3, "\x01\x00") + section(7, "\x01"+vector("_start")+"\x00\x00") + section(10, "\x01"+vector("\x00"+body+"\x0b"))
	}
	for module, want := range map[string][2]string{
		withBody("\x12\x00"):                                      {"tail calls", "-mtail-call"},
		withBody("\xfe\x03\x00"):                                  {"threads", "-pthread"},
		withBody("\xfb\x00\x00\x1a"):                              {"garbage collection", "Kotlin"},
		withBody("\x06\x40\x0b"):                                  {"exception handling", "-fno-exceptions"},
		withBody("\xfd\x80\x02"):                                  {"relaxed SIMD", "-mrelaxed-simd"},
		withBody("\xfc\x13"):                                      {"wide arithmetic", "-mwide-arithmetic"},
		withBody("\xfc\x12\x00"):                                  {"memory control", "memory.discard"},
		withBody("\xe0\x00"):                                      {"stack switching", "continuations"},
		withMemory("\x02\x00\x01\x00\x01"):                        {"multiple memories", "--multi-memory-lowering"},
		withMemory("\x01\x04\x01"):                                {"memory64", "wasm32"},
		withMemory("\x01\x08\x01\x00"):                            {"custom page sizes", "--page-size"},
		withMemory("\x01\x03\x01\x01"):                            {"threads", "one thread"},
		head + section(6, "\x01\x7f\x00\x41\x01\x41\x01\x6a\x0b"): {"extended constant expressions", "-mextended-const"},
		"\x00asm\x0d\x00\x01\x00":                                 {"component", "wasm32-wasip1"},
	} {
		problem, fix := refusal(t, module)
		assert.Contains(t, problem, want[0])
		assert.Contains(t, fix, want[1], want[0])
	}
}

// TestFilesThatAreNoModules: the error names the kind of file that is in the place of a module, and how to get the
// module.
func TestFilesThatAreNoModules(t *testing.T) {
	whole := unfit{export: "_start"}.module()
	for name, c := range map[string]struct{ file, problem, fix string }{
		"nothing":       {"", "the file is empty", "build or download"},
		"gzip":          {"\x1f\x8b\x08\x00\x00\x00\x00\x00", "compressed with gzip", "gunzip"},
		"a ZIP archive": {"PK\x03\x04\x14\x00\x00\x00", "a ZIP archive", "unpack"},
		"text":          {"\n  ;; a module\n(module)", "text format", "wat2wasm"},
		"short text":    {"(module)", "text format", "wat2wasm"},
		"a web page":    {"\xef\xbb\xbf\r\n<!DOCTYPE html><html>Not Found</html>", "a web page", "download"},
		"an answer":     {`{"message": "Not Found"}`, "is JSON", "download"},
		"Git LFS":       {"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n", "Git LFS", "git lfs pull"},
		"a program":     {"\x7fELF\x02\x01\x01\x00", "operating system", "wasip1"},
		"a library":     {"!<arch>\n/               ", "static library", "link it"},
		"a script":      {"#!/bin/sh\nexit 0\n", "a script", "interpreter"},
		"a short start": {whole[:6], "the file is cut off: module at byte 6: ends within the header", "download it again"},
		"cut off":       {whole[:len(whole)-2], "the file is cut off: code section at byte ", "download it again"},
	} {
		problem, fix := refusal(t, c.file)
		assert.Contains(t, problem, "guest.wasm: ", name)
		assert.Contains(t, problem, c.problem, name)
		assert.Contains(t, fix, c.fix, name)
	}
	_, fix := refusal(t, "not a module")
	assert.Empty(t, fix)
}
