package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/tool"
)

// The types of functions of pieces.
const (
	nothing    = iota // () → ()
	takesI32          // (i32) → ()
	givesRef          // () → externref
	givesI32          // () → i32
	givesPair         // () → v128
	types      = "\x05\x60\x00\x00\x60\x01\x7f\x00\x60\x00\x01\x6f\x60\x00\x01\x7f\x60\x00\x01\x7b"
	aMemory    = -1
	throughOne = "\x10\x00" // call 0
)

// piece is a module that can be linked with other modules.
type piece struct {
	imports []pieceImport
	exports []pieceExport
	memory  int // pages
}

type pieceImport struct {
	module, name string
	kind         int // a type, or aMemory
}

type pieceExport struct {
	name string
	kind int
	body string // if empty, it returns nothing or zero
}

func (p piece) module() string {
	var imports, exports, functions, bodies strings.Builder
	before := 0
	for _, i := range p.imports {
		kind := "\x00" + number(i.kind)
		if i.kind == aMemory {
			kind = "\x02\x00\x01"
		} else {
			before++
		}
		imports.WriteString(vector(i.module) + vector(i.name) + kind)
	}
	zero := map[int]string{nothing: "", takesI32: "", givesRef: "\xd0\x6f", givesI32: "\x41\x00", givesPair: "\xfd\x0c" + strings.Repeat("\x00", 16)}
	for n, e := range p.exports {
		exports.WriteString(vector(e.name) + "\x00" + number(before+n))
		functions.WriteString(number(e.kind))
		body := e.body
		if body == "" {
			body = zero[e.kind]
		}
		bodies.WriteString(vector("\x00" + body + "\x0b"))
	}
	count := number(len(p.exports))
	text := magic + section(1, types) + section(2, number(len(p.imports))+imports.String()) + section(3, count+functions.String())
	if p.memory > 0 {
		text += section(5, "\x01\x00"+number(p.memory))
	}
	return text + section(7, count+exports.String()) + section(10, count+bodies.String())
}

// through is a module whose function call calls the first function that it imports.
func through(imports ...pieceImport) piece {
	return piece{imports: imports, exports: []pieceExport{{"call", nothing, throughOne}}}
}

// answering is a library of one function.
func answering(name string, kind int) piece {
	return piece{exports: []pieceExport{{name: name, kind: kind}}}
}

// linkedIn writes a plug-in main.wasm, its libraries and its manifest into a folder.
func linkedIn(t testing.TB, dir, main string, libraries map[string]string, more string) *manifests.Manifest {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.wasm"), []byte(main), 0o600))
	var named []string
	for name, library := range libraries {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".wasm"), []byte(library), 0o600))
		named = append(named, fmt.Sprintf("%s: %s.wasm", name, name))
	}
	slices.Sort(named)
	return manifestIn(t, dir, "guest", "module: {path: main.wasm, abi: extism, libraries: {"+strings.Join(named, ", ")+"}}\n"+more)
}

func linkedWith(t testing.TB, main piece, libraries map[string]string, more string) *manifests.Manifest {
	t.Helper()
	return linkedIn(t, t.TempDir(), main.module(), libraries, more)
}

// TestLibrariesThatCannotBeUsed: inspecting a tool and preparing it report the same file and the same fix. Nothing is
// compiled.
func TestLibrariesThatCannotBeUsed(t *testing.T) {
	usesLib := through(pieceImport{"lib", "f", nothing})
	lib := answering("f", nothing)
	from := func(imports ...pieceImport) string { return piece{imports: imports, exports: lib.exports}.module() }
	const links, build = "module cannot be used: main.wasm: cannot be linked: ", "build these modules for each other"
	for name, c := range map[string]struct {
		main      piece
		libraries map[string]string
		problem   string
		fix       string
		library   string
	}{
		"no such function": {usesLib, map[string]string{"lib": answering("g", nothing).module()}, links + `it imports "f" of the library "lib", which exports no such function`, build, ""},
		"another type":     {usesLib, map[string]string{"lib": answering("f", takesI32).module()}, links + `it imports "f" of the library "lib", as a function of type`, build, ""},
		"a memory":         {through(pieceImport{"lib", "f", aMemory}, pieceImport{"lib", "f", nothing}), map[string]string{"lib": lib.module()}, links + `it imports "f" of the library "lib", which is a memory; only functions`, build, ""},
		"a reference":      {piece{imports: []pieceImport{{"lib", "f", givesRef}}, exports: []pieceExport{{name: "call"}}}, map[string]string{"lib": answering("f", givesRef).module()}, links + `it imports "f" of the library "lib", whose type is`, build, ""},
		"a vector":         {piece{imports: []pieceImport{{"lib", "f", givesPair}}, exports: []pieceExport{{name: "call"}}}, map[string]string{"lib": answering("f", givesPair).module()}, "only numbers can be passed to libraries", build, ""},
		"a cycle":          {usesLib, map[string]string{"lib": from(pieceImport{"other", "f", nothing}), "other": from(pieceImport{"lib", "f", nothing})}, "import from each other in a cycle", build, ""},
		"itself":           {usesLib, map[string]string{"lib": from(pieceImport{"lib", "f", nothing})}, "in a cycle", build, ""},
		"between libraries": {usesLib, map[string]string{"lib": from(pieceImport{"other", "g", nothing}), "other": lib.module()},
			`module cannot be used: lib.wasm: cannot be linked: the library "lib" imports "g" of the library "other", which exports no such function`, build, "lib"},
		"from the module itself": {usesLib, map[string]string{"lib": from(pieceImport{"main", "call", nothing})},
			`module cannot be used: lib.wasm imports the function "call" of "main", which this runtime does not offer`, "if another module has them, name it in the manifest, such as libraries: {main: main.wasm} in module", "lib"},
		"from a module that is missing": {through(pieceImport{"lib", "f", nothing}, pieceImport{"other", "f", nothing}), map[string]string{"lib": lib.module()},
			`module cannot be used: main.wasm imports the function "f" of "other", which this runtime does not offer`, "libraries: {other: other.wasm}", ""},
		"under another name": {usesLib, map[string]string{"Lib": lib.module()},
			`module cannot be used: main.wasm imports the function "f" of "lib", which this runtime does not offer`, `libraries: {lib: lib.wasm} in module (its libraries are named ["Lib"]); `, ""},
		"what the host lacks": {usesLib, map[string]string{"lib": from(pieceImport{extism.Module, "nothing", nothing})},
			`module cannot be used: lib.wasm imports the function "nothing" of "extism:host/env", which this runtime does not offer`, "plug-ins get the functions of", "lib"},
		"what the host has otherwise": {usesLib, map[string]string{"lib": from(pieceImport{extism.Module, "input_length", nothing})},
			`module cannot be used: lib.wasm imports the function "input_length" of "extism:host/env" with the wrong type`, "declare them as", "lib"},
		"what is not requested": {usesLib, map[string]string{"lib": from(pieceImport{"caisson:net@1", "request", nothing})},
			`but its manifest does not ask for permissions.network`, "request the permission", "lib"},
		"several": {through(pieceImport{"lib", "f", nothing}, pieceImport{"env", "g", nothing}), map[string]string{"lib": from(pieceImport{"gojs", "f", nothing})},
			`module cannot be used: main.wasm imports the function "g" of "env", which this runtime does not offer; lib.wasm imports the function "f" of "gojs", which this runtime does not offer`, "GOOS=wasip1", ""},
		"a name of the host": {usesLib, map[string]string{"wasi_snapshot_preview1": lib.module()}, `module cannot be used: no library can be named "wasi_snapshot_preview1", since the host offers functions of that name`, "another name", "wasi_snapshot_preview1"},
		"cut off":            {usesLib, map[string]string{"lib": lib.module()[:20]}, "module cannot be used: lib.wasm: the file is cut off", "build or download it again", "lib"},
		"text":               {usesLib, map[string]string{"lib": "hello"}, "module cannot be used: lib.wasm: ", "", "lib"},
		"a component":        {usesLib, map[string]string{"lib": "\x00asm\x0d\x00\x01\x00"}, "module cannot be used: lib.wasm: ", "without the step that makes a component", "lib"},
		"invalid code":       {usesLib, map[string]string{"lib": piece{exports: []pieceExport{{"f", nothing, "\x6a"}}}.module()}, "module cannot be used: lib.wasm: ", "", "lib"},
	} {
		t.Run(name, func(t *testing.T) {
			m := linkedWith(t, c.main, c.libraries, "")
			_, err := InspectModule(m)
			require.ErrorIs(t, err, ErrModule)
			assert.ErrorContains(t, err, c.problem)
			var about interface {
				error
				Library() string
				Problem() (text, fix string)
			}
			require.ErrorAs(t, err, &about)
			_, fix := about.Problem()
			assert.Contains(t, fix, c.fix)
			assert.Equal(t, c.library, about.Library())
			assert.Equal(t, 1, strings.Count(err.Error(), "cannot be used"))
			if c.problem == "module cannot be used: lib.wasm: " {
				assert.NotContains(t, err.Error(), "main.wasm")
			}
			loaded := load(t, newRuntime(t, Options{}), m, manifests.Grants{})
			require.EqualError(t, loaded.Prepare(t.Context()), err.Error())
		})
	}
	m := linkedWith(t, usesLib, map[string]string{"lib": lib.module()}, "")
	inspect(t, m)
	mustInvoke(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}), "{}") // control
}

// TestAttackLibraryNamedLikeTheProgramsFunctions: the functions that a program offers cannot be replaced by a library.
func TestAttackLibraryNamedLikeTheProgramsFunctions(t *testing.T) {
	m := linkedWith(t, through(pieceImport{"text", "f", nothing}), map[string]string{"text": answering("f", nothing).module()}, "permissions: {functions: [text.f]}\n")
	offered := HostFunction{Namespace: "text", Name: "f", Call: func(context.Context, *CurrentPlugin, []uint64) error { return nil }}
	err := load(t, newRuntime(t, Options{HostFunctions: []HostFunction{offered}}), m, offering("text.f")).Prepare(t.Context())
	require.ErrorIs(t, err, ErrModule)
	require.ErrorContains(t, err, `no library can be named "text", since the host offers functions of that name`)
	mustInvoke(t, load(t, newRuntime(t, Options{}), m, offering("text.f")), "{}") // control: the host does not offer them
}

// TestLibrariesAskForFunctionsOfTheProgram: a library gets those that the manifest requests and the operator grants, as
// the module itself does.
func TestLibrariesAskForFunctionsOfTheProgram(t *testing.T) {
	library := piece{imports: []pieceImport{{hostNamespace, "secret", nothing}}, exports: []pieceExport{{"f", nothing, throughOne}}}
	called := 0
	r := newRuntime(t, Options{HostFunctions: []HostFunction{{Name: "secret", Call: func(context.Context, *CurrentPlugin, []uint64) error {
		called++
		return nil
	}}}})
	linked := func(more string, grants manifests.Grants) *Tool {
		return load(t, r, linkedWith(t, through(pieceImport{"lib", "f", nothing}), map[string]string{"lib": library.module()}, more), grants)
	}
	const asks = "permissions: {functions: [secret]}\n"
	require.ErrorContains(t, linked("", offering("secret")).Prepare(t.Context()),
		`lib.wasm imports the function "secret" of "extism:host/user", but its manifest does not ask for permissions.functions`)
	_, err := invoke(t, linked(asks, manifests.Grants{}), "{}")
	require.ErrorIs(t, err, tool.Denied)
	assert.Zero(t, called)
	mustInvoke(t, linked(asks, offering("secret")), "{}") // control
	assert.Equal(t, 1, called)
}

// TestFilesOfLibraries: an error about a file names that file.
func TestFilesOfLibraries(t *testing.T) {
	lib := answering("f", nothing).module()
	linked := func() (*manifests.Manifest, string) {
		dir := t.TempDir()
		return linkedIn(t, dir, through(pieceImport{"lib", "f", nothing}).module(), map[string]string{"lib": lib}, ""), filepath.Join(dir, "lib.wasm")
	}
	for want, change := range map[string]func(file string) error{
		"lib.wasm does not exist":                                               os.Remove,
		"lib.wasm is not a regular file":                                        func(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
		"lib.wasm has 134217729 bytes, the":                                     func(file string) error { return os.Truncate(file, modules.MaxBytes+1) },
		"with lib.wasm, the modules of the tool have more than 134217728 bytes": func(file string) error { return os.Truncate(file, modules.MaxBytes) },
	} {
		m, file := linked()
		require.NoError(t, change(file))
		_, err := InspectModule(m)
		require.ErrorIs(t, err, ErrModule, want)
		require.ErrorContains(t, err, want)
		var about interface {
			error
			Library() string
		}
		require.ErrorAs(t, err, &about)
		assert.Equal(t, "lib", about.Library())
		require.EqualError(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Prepare(t.Context()), err.Error())
	}
}

// TestLibrariesAreDescribed: a tool with libraries is all of its modules.
func TestLibrariesAreDescribed(t *testing.T) {
	main := through(pieceImport{"b", "f", nothing})
	main.memory = 2
	first := piece{exports: []pieceExport{{name: "f", kind: givesI32}}, memory: 3}
	second := piece{imports: []pieceImport{{"a", "f", givesI32}, {"caisson:net@1", "request", nothing}}, exports: []pieceExport{{name: "f", kind: nothing}}}
	m := linkedWith(t, main, map[string]string{"a": first.module(), "b": second.module()}, "permissions: {network: [{host: example.com}], env: [LANG]}\n")
	info, err := InspectModule(m)
	require.ErrorContains(t, err, `b.wasm imports the function "request" of "caisson:net@1" with the wrong type`)
	assert.Equal(t, []LibraryInfo{
		{"a", "a.wasm", engine.DigestOf([]byte(first.module())).String(), len(first.module()), false},
		{"b", "b.wasm", engine.DigestOf([]byte(second.module())).String(), len(second.module()), false},
	}, info.Libraries)
	assert.Equal(t, len(main.module())+len(first.module())+len(second.module()), info.Bytes)
	assert.Equal(t, []string{"caisson:net@1.request"}, info.Imports, "from the host")
	assert.Equal(t, []string{"call"}, info.Exports)
	assert.Equal(t, int64(5<<16), info.MemoryBytes)
	assert.Equal(t, []string{"permissions.env"}, info.Unused, "a library uses the network")
	assert.Equal(t, digestOf(t, m).String(), info.SHA256)
	assert.NotEqual(t, engine.DigestOf([]byte(main.module())).String(), info.SHA256)
}

// TestMemoryThatAPluginStartsWith: with the memory that inspecting a plug-in shows, its calls start, and with a page
// less they do not.
func TestMemoryThatAPluginStartsWith(t *testing.T) {
	main, library := through(pieceImport{"lib", "f", givesI32}), piece{exports: []pieceExport{{name: "f", kind: givesI32}}, memory: 3}
	main.exports[0].kind, main.memory = givesI32, 2
	for _, imports := range [][]pieceImport{nil, {{extism.Module, "get_log_level", givesI32}}} {
		library.imports = imports
		libraries := map[string]string{"lib": library.module()}
		pages := int(inspect(t, linkedWith(t, main, libraries, "")).MemoryBytes >> 16)
		require.Equal(t, len(imports) > 0, pages > 5, "the kernel's are counted where it is imported")
		for limit, enough := range map[int]bool{pages: true, pages - 1: false} {
			m := linkedWith(t, main, libraries, fmt.Sprintf("limits: {memory: %dKiB}\n", 64*limit))
			_, err := invoke(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}), "{}")
			if enough {
				assert.NoError(t, err, "%d pages", limit)
			} else {
				assert.ErrorContains(t, err, fmt.Sprintf("it asked for %dKiB", 64*pages))
			}
		}
	}
}

// TestDigestsCoverLibraries: a change of any file of a linked tool, or of a file's name, makes another tool for pins,
// for grants to a module, and for approvals.
func TestDigestsCoverLibraries(t *testing.T) {
	usesLib := through(pieceImport{"lib", "f", nothing}).module()
	lib, other := answering("f", nothing).module(), piece{exports: []pieceExport{{name: "f"}, {name: "g"}}}.module()
	r := newRuntime(t, Options{})
	seen := map[string]string{}
	for name, c := range map[string]struct {
		main      string
		libraries map[string]string
	}{
		"as it is":        {usesLib, map[string]string{"lib": lib}},
		"another library": {usesLib, map[string]string{"lib": other}},
		"another module":  {piece{imports: []pieceImport{{"lib", "f", nothing}}, exports: []pieceExport{{name: "call"}}}.module(), map[string]string{"lib": lib}},
		"one more":        {usesLib, map[string]string{"lib": lib, "more": lib}},
		"another name":    {usesLib, map[string]string{"lib": lib, "most": lib}},
	} {
		m := linkedIn(t, t.TempDir(), c.main, c.libraries, "")
		identity, err := load(t, r, m, manifests.Grants{}).Identity(t.Context())
		require.NoError(t, err)
		for _, text := range []string{identity, inspect(t, m).SHA256} {
			assert.Empty(t, seen[text], "%s is the same as %s", seen[text], name)
			seen[text] = name
		}
	}

	dir := t.TempDir()
	const network = "permissions: {network: [{host: example.com}]}\n"
	m := linkedIn(t, dir, usesLib, map[string]string{"lib": lib}, network)
	bound := manifests.Grants{Network: []manifests.NetworkGrant{{
		Binding: manifests.Binding{SHA256: inspect(t, m).SHA256}, NetworkPermission: manifests.NetworkPermission{Host: "example.com"},
	}}}
	gets := func() string { return load(t, r, m, bound).Decisions()[0].Effective }
	pinned := manifestIn(t, dir, "guest", "module: {path: main.wasm, abi: extism, libraries: {lib: lib.wasm}, sha256: "+inspect(t, m).SHA256+"}\n")
	before := load(t, r, pinned, manifests.Grants{})
	require.NoError(t, before.Prepare(t.Context()))
	require.NotEmpty(t, gets())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib.wasm"), []byte(other), 0o600))
	assert.Empty(t, gets(), "the grant is for the other library")
	_, err := InspectModule(pinned)
	require.ErrorIs(t, err, ErrDigest)
	assert.ErrorContains(t, err, "main.wasm with its libraries has sha256")
	require.ErrorIs(t, load(t, r, pinned, manifests.Grants{}).Prepare(t.Context()), ErrDigest)
	mustInvoke(t, before, "{}") // the compiled module still runs
}

// TestAttackSwappedLibrary: a tool that was loaded, and perhaps approved, with one library does not run with another
// one that replaces it before the first call.
func TestAttackSwappedLibrary(t *testing.T) {
	r := newRuntime(t, Options{})
	for name, replacement := range map[string]piece{"swapped": {exports: []pieceExport{{"f", nothing, "\x01"}}}, "control": answering("f", nothing)} {
		dir := t.TempDir()
		m := linkedIn(t, dir, through(pieceImport{"lib", "f", nothing}).module(), map[string]string{"lib": answering("f", nothing).module()}, "")
		loaded := load(t, r, m, manifests.Grants{})
		_, err := loaded.Identity(t.Context())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lib.wasm"), []byte(replacement.module()), 0o600))
		_, err = invoke(t, loaded, "{}")
		if name == "control" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrDigest)
		require.ErrorContains(t, loaded.Prepare(t.Context()), "main.wasm with its libraries was")
	}
}

// TestManifestsAllowAsManyLibrariesAsRun: a manifest cannot ask for more than the engine links.
func TestManifestsAllowAsManyLibrariesAsRun(t *testing.T) {
	assert.Equal(t, engine.MaxLibraries, modules.MaxLibraries)
}

// TestManyImportsTakeNoTime: to inspect a tool, its modules are linked without a deadline: thousands of functions of a
// library, and thousands of modules that could be libraries.
func TestManyImportsTakeNoTime(t *testing.T) {
	shortest := func(count, imported int) time.Duration {
		main, library, lost := piece{exports: []pieceExport{{name: "call"}}}, piece{}, piece{exports: []pieceExport{{name: "call"}}}
		for i := range count {
			name := fmt.Sprintf("f%d", i)
			library.exports = append(library.exports, pieceExport{name: name})
			if i >= count-imported {
				main.imports = append(main.imports, pieceImport{"lib", name, nothing})
				lost.imports = append(lost.imports, pieceImport{name, "f", nothing})
			}
		}
		linked := linkedWith(t, main, map[string]string{"lib": library.module()}, "")
		missing := linkedWith(t, lost, map[string]string{"lib": library.module()}, "")
		least := time.Hour
		for range 3 {
			began := time.Now()
			inspect(t, linked)
			_, err := InspectModule(missing)
			require.ErrorIs(t, err, ErrModule)
			_, err = Recognise([]byte(lost.module()))
			require.NoError(t, err)
			least = min(least, time.Since(began))
		}
		return least
	}
	few, many := shortest(9_000, 999), shortest(90_000, 9_990)
	t.Log(few, many)
	assert.Less(t, many, 70*few, "ten times as many; it would be a hundred if each were looked for among all")
}

// TestLibrariesAreStartedForAnyEntry: also for that of a command, and that which starts a reactor, before
// which nothing of the plug-in itself is called.
func TestLibrariesAreStartedForAnyEntry(t *testing.T) {
	r := newRuntime(t, Options{})
	lib := piece{memory: 1, exports: []pieceExport{
		{"_initialize", nothing, "\x41\x10\x41\x07\x36\x02\x00"}, // memory[16] = 7
		{"f", givesI32, "\x41\x10\x28\x02\x00"},
	}}
	const trapUnlessStarted = "\x10\x00\x41\x07\x47\x04\x40\x00\x0b" // if f() != 7 trap
	for _, entry := range []string{"call", "_start", "_initialize"} {
		for started, library := range map[bool]piece{true: lib, false: {memory: 1, exports: lib.exports[1:]}} { // the second is the control
			main := piece{imports: []pieceImport{{"lib", "f", givesI32}}, exports: []pieceExport{{entry, nothing, trapUnlessStarted}}}
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "main.wasm"), []byte(main.module()), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "lib.wasm"), []byte(library.module()), 0o600))
			loaded := load(t, r, manifestIn(t, dir, "guest", "module: {path: main.wasm, abi: extism, entry: "+entry+", libraries: {lib: lib.wasm}}\n"), manifests.Grants{})
			for range 4 { // some of them resume the started program
				outcome, err := invoke(t, loaded, "{}")
				assert.Equal(t, started, outcome.Result.Success, "%s: %v", entry, err)
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}
