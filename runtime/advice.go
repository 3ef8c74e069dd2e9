package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// commands lists how languages build a WASI command. Like this whole file, it is advice for people: a module can claim
// anything about its compiler.
var commands = []struct {
	producers []string
	fix       string
}{
	{[]string{"TinyGo"}, "build it with tinygo build -target=wasip1, without -buildmode=c-shared"},
	{[]string{"Go"}, "build it with GOOS=wasip1 GOARCH=wasm, without -buildmode=c-shared"},
	{[]string{"Rust", "rustc"}, "build a program (src/main.rs), not a library, with cargo build --target wasm32-wasip1"},
	{[]string{"Swift"}, "build an executable, not a library, with an SDK for wasm32-unknown-wasip1"},
	{[]string{"clang", "C11", "C99", "C_plus_plus", "C++"},
		"build a program with a main function for wasm32-wasip1, for instance with wasi-sdk, and without " +
			"-mexec-model=reactor, -nostartfiles and --no-entry"},
}

// asProgram says how to build a WASI command.
func asProgram(producers []string) string {
	for _, language := range commands {
		if made(producers, language.producers...) {
			return language.fix
		}
	}
	return "build it as a program for WASI preview 1: in Go with GOOS=wasip1 GOARCH=wasm, in Rust with --target " +
		"wasm32-wasip1, in C with wasi-sdk"
}

// made reports whether one of the producers has one of the names, perhaps with a version or the name
// of a distribution: "clang" is in "clang_21.1.4-wasi-sdk" and "Debian clang".
func made(producers []string, names ...string) bool {
	return slices.ContainsFunc(producers, func(producer string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(producer, name) || strings.HasSuffix(producer, " "+name)
		})
	})
}

const (
	singleThreaded = "build it for one thread: for wasm32-wasip1 rather than wasm32-wasip1-threads, and without -pthread"
	fromEmscripten = "it was built by Emscripten for JavaScript: build it with wasi-sdk, or with emcc -sSTANDALONE_WASM " +
		"and without what needs JavaScript"
)

// foreign are hosts other than WASI preview 1 for which modules are built, as their imports show.
var foreign = []struct {
	is  func(i wasm.Import) bool
	fix string
}{
	{isBindgen,
		"it was built with wasm-bindgen for JavaScript: build a program in Rust with cargo build --target wasm32-wasip1, " +
			"without wasm-bindgen"},
	{of("gojs", "go"),
		"it was built for Go's JavaScript host: build it with GOOS=wasip1 GOARCH=wasm, or with tinygo build -target=wasip1"},
	{below("wasi:"), "it was built for WASI preview 2: build it for preview 1, such as wasm32-wasip1"},
	{of("wasi_unstable"),
		"it was built for a draft of WASI other than preview 0: build it for preview 1 with a current compiler, such as " +
			"for wasm32-wasip1"},
	{below("wasix"),
		"it was built for WASIX: build it for WASI preview 1, such as wasm32-wasip1, without threads, processes and sockets"},
	{isSocket,
		"it was built for the sockets of one runtime, such as WasmEdge, which WASI preview 1 does not have: leave out the " +
			"code that opens sockets; a tool makes HTTP requests with the functions of caisson:net@1, which ABI.md describes"},
	{of("wasi"), singleThreaded}, // its one function is thread-spawn
	{below("wasi_ephemeral_"),
		"it was built for a proposal to WASI, which few runtimes have: leave out the code that calls it"},
	{of(extism.Module),
		"it is a plug-in for Extism: write abi: extism, or build it as a program that reads its input from standard input"},
	{below("extism"),
		"it is a plug-in for one host of Extism plug-ins, whose own functions it calls: offer them with " +
			"Options.HostFunctions in a Go program (docs/extism.md), or leave out the code that calls them"},
	{func(i wasm.Import) bool { return of("napi", "emnapi")(i) || env("napi_", "emnapi_", "_emnapi_")(i) },
		"it is an addon for Node.js: build a program of the library, for wasm32-wasip1"},
	{isAbort,
		"it is AssemblyScript for JavaScript: compile it with --config " +
			"node_modules/@assemblyscript/wasi-shim/asconfig.json, of the package @assemblyscript/wasi-shim"},
	{env("emscripten_", "_emscripten_", "invoke_", "__syscall_", "_embind_", "_emval_"), fromEmscripten},
	{isMinified, fromEmscripten},
	{env("__cxa_", "_Unwind_", "__wasm_longjmp", "__wasm_setjmp"),
		"it needs exceptions: compile C++ with -fno-exceptions, and C without setjmp and longjmp"},
}

// loose are imports that may have been left to a host by mistake.
var loose = []struct {
	is  func(i wasm.Import) bool
	fix string
}{
	{func(i wasm.Import) bool { return i.Kind == wasm.ExternMemory }, "link it without --import-memory"},
	{env(""),
		"link it without --allow-undefined, to see which library is missing, and leave out the code for hosts other " +
			"than WASI"},
}

func of(modules ...string) func(wasm.Import) bool {
	return func(i wasm.Import) bool { return slices.Contains(modules, i.Module) }
}

func below(prefix string) func(wasm.Import) bool {
	return func(i wasm.Import) bool { return strings.HasPrefix(i.Module, prefix) }
}

// env returns whether an import is one that linkers leave open, with one of the prefixes.
func env(prefixes ...string) func(wasm.Import) bool {
	return func(i wasm.Import) bool {
		return i.Module == "env" &&
			slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(i.Name, prefix) })
	}
}

func isBindgen(i wasm.Import) bool {
	return i.Module == "wbg" || strings.HasPrefix(i.Module, "__wbindgen") || strings.HasSuffix(i.Module, "_bg.js")
}

// isSocket reports whether an import is one that runtimes add to WASI preview 1's few functions for sockets.
func isSocket(i wasm.Import) bool {
	return i.Module == wasi.ModuleName && strings.HasPrefix(i.Name, "sock_")
}

// isAbort reports whether an import is AssemblyScript's abort, which takes a message, a file, a line
// and a column.
func isAbort(i wasm.Import) bool {
	return i.Module == "env" && i.Name == "abort" && len(i.Function.Params) == 4
}

// isMinified reports whether Emscripten shortened the names of an import.
func isMinified(i wasm.Import) bool { return i.Module == "a" && len(i.Name) <= 2 }

// forImports returns the fix for a module whose imports are not offered. The libraries are those that the tool has.
func forImports(missing []wasm.Import, p part, plugin bool, libraries []string) string {
	if plugin && slices.ContainsFunc(missing, of(extism.Module)) {
		return "leave out what uses them: plug-ins get the functions of " + extism.Module +
			" that Extism's own libraries offer"
	}
	if fix := foreignTo(missing); fix != "" {
		return fix
	}
	fix := "leave out the code that calls them"
	switch modules := offeredModules(); {
	case plugin:
	case !slices.ContainsFunc(missing, func(i wasm.Import) bool { return !slices.Contains(modules, i.Module) }):
		fix += ": they are neither among the functions of WASI preview 1 nor among those that ABI.md describes"
	default:
		fix += ": this runtime offers the functions of " + strings.Join(modules, ", ")
	}
	for _, mistake := range loose {
		if slices.ContainsFunc(missing, mistake.is) {
			fix = mistake.fix
			break
		}
	}
	if plugin {
		if names := possibleLibraries(missing); len(names) > 0 {
			known := ""
			if len(libraries) > 0 {
				known = fmt.Sprintf(" (its libraries are named %q)", libraries)
			}
			return "if another module has them, name it in the manifest, such as libraries: {" + names[0] + ": " + names[0] +
				".wasm} in module" + known + "; " +
				"if the program that runs the plug-in has them, offer them with Options.HostFunctions in Go " +
				"(docs/extism.md); else " + fix
		}
		return fix
	}
	if _, found := p.description.ExportedFunction(startFunction); !found {
		fix += "; " + asProgram(wasm.Producers(p.source))
	}
	return fix
}

// foreignTo returns the fix for imports from another host, or "".
func foreignTo(missing []wasm.Import) string {
	for _, f := range foreign {
		if slices.ContainsFunc(missing, f.is) {
			return f.fix
		}
	}
	return ""
}

// possibleLibraries returns the modules among those of the imports that could be libraries: those of which only
// functions are imported, and which no other host has. They are in the imports' order.
func possibleLibraries(missing []wasm.Import) []string {
	var asked []string
	possible := map[string]bool{}
	for _, i := range missing {
		before, known := possible[i.Module]
		if !known {
			asked = append(asked, i.Module)
			before = modules.LibraryName.MatchString(i.Module)
		}
		possible[i.Module] = before && i.Kind == wasm.ExternFunction && foreignTo([]wasm.Import{i}) == ""
	}
	return slices.DeleteFunc(asked, func(module string) bool { return !possible[module] })
}

// proposalFixes are the fixes for modules that need a proposal, except exception handling.
var proposalFixes = map[string]string{
	wasm.Components:         "build it for WASI preview 1, such as wasm32-wasip1, without the step that makes a component",
	wasm.GarbageCollection:  forManaged,
	wasm.FunctionReferences: forManaged,
	wasm.Threads:            singleThreaded,
	wasm.Memory64:           "build it for wasm32 rather than wasm64",
	wasm.RelaxedVectors:     without("relaxed SIMD", "relaxed-simd"),
	wasm.TailCalls: without("tail calls", "tail-call") +
		"; compilers of languages that need them, such as Scheme and OCaml, may have an option for other targets",
	wasm.MultipleMemories: "give it one memory: build it without -mmultimemory, or convert it with wasm-opt " +
		"--enable-multimemory --multi-memory-lowering",
	wasm.ExtendedConstants: without("extended constant expressions", "extended-const") +
		", and as a program, not as a shared library",
	wasm.WideArithmetic:   without("wide arithmetic", "wide-arithmetic"),
	wasm.CustomPageSizes:  "give its memory pages of 64 KiB: link it without --page-size",
	wasm.MemoryDiscarding: "leave out the instruction memory.discard",
	wasm.StackSwitching: "build it without stack switching: in a language that does without continuations in " +
		"WebAssembly, such as Go, Rust, Zig or C",
}

const forManaged = "the compilers of Kotlin, Dart, Java, OCaml and Scheme need it: write the tool in a language " +
	"that does without, such as Go, Rust, Zig or C"

func forProposal(proposal string, producers []string) string {
	if proposal == wasm.ExceptionHandling {
		return withoutExceptions(producers)
	}
	return proposalFixes[proposal]
}

// without says how compilers leave out a feature of LLVM's name.
func without(what, feature string) string {
	return "build it without " + what + ": in C without -m" + feature + ", in Rust without -C target-feature=+" + feature
}

func withoutExceptions(producers []string) string {
	const inC = "compile C++ with -fno-exceptions and without -fwasm-exceptions, and C without setjmp and longjmp " +
		"(-mllvm -wasm-enable-sjlj)"
	switch {
	case made(producers, "Rust", "rustc"):
		return `set panic = "abort" in the profile in Cargo.toml, which is the default of wasm32-wasip1, ` +
			`and link no C++ that throws`
	case made(producers, "C_plus_plus", "C++"):
		return "compile it with -fno-exceptions and without -fwasm-exceptions"
	case made(producers, "clang", "C11", "C99"):
		return inC
	}
	return inC +
		"; with Emscripten, leave out -sSUPPORT_LONGJMP=wasm, too; in Rust, set panic = \"abort\"; Kotlin, Dart, Java and " +
		"OCaml cannot do without: write the tool in another language"
}
