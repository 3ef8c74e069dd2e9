package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/extism"
	"github.com/caisson-run/caisson/tool"
)

// written is a function of a module that the tests write, without parameters.
type written struct{ export, body string }

// The results of functions.
const (
	noResult = "\x00"
	aNumber  = "\x01\x7f"
)

// assembled returns a module that imports functions from a module, or if that has no name from those before the
// dots, and has these functions. All return a number.
func assembled(from string, imports []string, pages int, functions ...written) []byte {
	return assembledFor(aNumber, from, imports, pages, functions...)
}

// assembledFor is like assembled for functions with other results.
func assembledFor(results, from string, imports []string, pages int, functions ...written) []byte {
	number := func(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }
	vector := func(text string) string { return number(len(text)) + text }
	imported, exported, indexes, bodies := "", "", "", ""
	for _, name := range imports {
		module := from
		if module == "" {
			module, name, _ = strings.Cut(name, ".")
		}
		imported += vector(module) + vector(name) + "\x00\x00"
	}
	for n, f := range functions {
		exported += vector(f.export) + "\x00" + number(len(imports)+n)
		indexes += "\x00"
		bodies += vector("\x00" + f.body + "\x0b")
	}
	count := number(len(functions))
	section := func(id byte, content string) string { return string(rune(id)) + vector(content) }
	return []byte("\x00asm\x01\x00\x00\x00" + section(1, "\x01\x60\x00"+results) + section(2, number(len(imports))+imported) + section(3, count+indexes) +
		section(5, "\x01\x00"+number(pages)) + section(7, count+exported) + section(10, count+bodies))
}

// forwarder returns a plug-in whose exports do nothing but call those of a library.
func forwarder(s subject, exports ...string) subject { return forwarderWith(aNumber, s, exports...) }

// forwarderWith is like forwarder for functions with other results.
func forwarderWith(results string, s subject, exports ...string) subject {
	var functions []written
	for n, export := range exports {
		functions = append(functions, written{export, "\x10" + string(binary.AppendUvarint(nil, uint64(n)))}) // call
	}
	s.libraries = map[string][]byte{"lib": s.module}
	s.module = assembledFor(results, "lib", exports, 0, functions...)
	return s
}

// withNames returns a plug-in whose libraries say in their name sections how their exports are called: by these
// names go-sdk finds them. Caisson finds them by the names under which they are exported.
func withNames(t testing.TB, s subject) subject {
	t.Helper()
	s.libraries = maps.Clone(s.libraries)
	for library, module := range s.libraries {
		of := sha256.Sum256(module)
		if named[of] == nil {
			named[of] = withNamesOfExports(t, module)
		}
		s.libraries[library] = named[of]
	}
	return s
}

// named are the modules that [withNames] has made, by the digests of their originals: compiling large ones takes long.
// Tests that use it run one after the other.
var named = map[[sha256.Size]byte][]byte{}

func withNamesOfExports(t testing.TB, module []byte) []byte {
	t.Helper()
	number := func(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }
	vector := func(text string) string { return number(len(text)) + text }
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer func() { assert.NoError(t, r.Close(context.WithoutCancel(t.Context()))) }()
	compiled, err := r.CompileModule(t.Context(), module)
	require.NoError(t, err)
	byIndex := map[int]string{}
	for name, function := range compiled.ExportedFunctions() {
		byIndex[int(function.Index())] = name
	}
	names := ""
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		names += number(index) + vector(byIndex[index])
	}
	return slices.Concat(withoutNames(module), []byte("\x00"+vector(vector("name")+"\x01"+vector(number(len(byIndex))+names))))
}

// withoutNames returns a module without its name section, of which there can be one.
func withoutNames(module []byte) []byte {
	kept := slices.Clone(module[:8])
	for at := 8; at < len(module); {
		size, read := binary.Uvarint(module[at+1:])
		end := at + 1 + read + int(size)
		if isNames := module[at] == 0 && strings.HasPrefix(string(module[at+1+read:end]), "\x04name"); !isNames {
			kept = append(kept, module[at:end]...)
		}
		at = end
	}
	return kept
}

// words returns a text of letters from all over Unicode.
func words(random *rand.Rand) string {
	var text strings.Builder
	for range random.IntN(300) {
		c := rune(random.IntN(0x80))
		if random.IntN(3) == 0 {
			c = rune(random.IntN(utf8.MaxRune))
		}
		if utf8.ValidRune(c) {
			text.WriteRune(c)
		}
	}
	return text.String()
}

// TestLinkedPluginsAnswerTheSame: a plug-in and its library, for random texts, from manifests of Caisson
// and of Extism, whichever of the modules comes first there.
func TestLinkedPluginsAnswerTheSame(t *testing.T) {
	modules := sdkModules(t)
	s := subject{name: "main", module: modules["main"], libraries: map[string][]byte{"lib": modules["lib"]}}
	theirs := theirs{}.load(t, s, "run_test")
	lib, main := `{"path": "lib.wasm", "name": "lib"}`, `{"path": "main.wasm", "name": "main"}`
	ours := map[string]func(string) answer{
		"a manifest of Caisson": ours{}.load(t, s, "run_test"),
		"the library first":     fromExtism(t, s, lib+", "+main),
		"the library last":      fromExtism(t, s, main+", "+lib),
		"the last is main":      fromExtism(t, s, lib+`, {"path": "main.wasm"}`),
	}
	random := rand.New(rand.NewPCG(7, 25))
	for n := range testsize.Of(30, 500) {
		text := words(random)
		if n == 0 {
			text = strings.Repeat("benjamin ", 20_000)
		}
		want := theirs(text)
		require.Empty(t, want.Error)
		require.True(t, strings.HasPrefix(want.Output, "Hello, "))
		for name, call := range ours {
			require.Equal(t, want, call(text), "%s: %.200q", name, text)
		}
	}
}

// TestRandomLibrariesAnswerTheSame: libraries that call each other in random order, without a cycle, each of which
// counts its calls in its memory and adds the count to its result.
func TestRandomLibrariesAnswerTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 23))
	answers := map[string]bool{}
	for range testsize.Of(10, 100) {
		libraries := random.IntN(modules.MaxLibraries) + 1
		calls := func(from int) (imports []string, body string) {
			for library := from; library < libraries; library++ {
				for range random.IntN(3) {
					body += "\x10" + string(rune(len(imports))) + "\x6a" // call, i32.add
					imports = append(imports, fmt.Sprintf("library%d.f", library))
				}
			}
			return imports, body
		}
		s := subject{libraries: map[string][]byte{}}
		for library := range libraries {
			const count = "\x41\x00\x41\x00\x28\x02\x00\x41\x01\x6a\x36\x02\x00\x41\x00\x28\x02\x00" // increments a word, and loads it
			imports, body := calls(library + 1)
			s.libraries[fmt.Sprintf("library%d", library)] = assembled("", imports, 1, written{"f", count + body})
		}
		imports, body := calls(0)
		s.module = assembled("", imports, 0, written{"run", "\x41\x01" + body})
		want := theirs{}.load(t, withNames(t, s), "run")("").Error
		number, found := strings.CutPrefix(want, "code ")
		require.True(t, found, want)
		answers[number] = true
		for range 3 {
			require.Contains(t, ours{}.load(t, s, "run")("").Error, "returned "+number)
		}
	}
	assert.Greater(t, len(answers), 4, "they must differ")
}

// TestLibrariesInEachLanguageAnswerTheSame: the plug-in in each language, as a library. What starts it is called before
// it is used: without that, those in Go cannot run.
func TestLibrariesInEachLanguageAnswerTheSame(t *testing.T) {
	serve(t)
	for _, language := range languages() {
		t.Run(string(language), func(t *testing.T) {
			s := withNames(t, forwarder(pdk(t, language), "echo", "reverse", "count_vowels", "config", "log_levels", "fail", "trap", "get", "allocate"))
			s.config, s.hosts = map[string]string{"key": "value"}, []string{"api.example.com"}
			p := newPair(s)
			for range testsize.Of(2, 50) {
				random := rand.New(rand.NewPCG(25, 7))
				text := words(random)
				require.Equal(t, text, p.same(t, "echo", text))
				p.same(t, "reverse", text)
				require.Contains(t, p.same(t, "count_vowels", text), "count")
				require.Equal(t, "value", p.same(t, "config", "key"))
				p.same(t, "config", "none")
				p.same(t, "fail", "it is broken")
				p.same(t, "get", "https://api.example.com/")
				p.same(t, "allocate", "100")
			}
			here, there := p.both(t, "trap", "")
			require.NotEmpty(t, there.Error)
			require.Contains(t, here.Error, "the tool crashed")
			here, there = p.both(t, "log_levels", "a message")
			require.Empty(t, there.Error)
			require.Empty(t, here.Error)
			require.NotEmpty(t, there.Logs)
			for _, message := range there.Logs {
				assert.Contains(t, strings.Join(here.Logs, "\n"), message)
			}
		})
	}
}

// fromExtism loads the one tool of a manifest of Extism with these modules.
func fromExtism(t testing.TB, s subject, modules string) func(input string) answer {
	t.Helper()
	loaded, err := shared.Load(t.Context(), translated(t, t.TempDir(), s, modules), manifests.Grants{})
	require.NoError(t, err)
	return func(input string) answer {
		outcome, _ := loaded.Invoke(t.Context(), tool.Invocation{CallID: "the-call", Tool: "plugin_run_test", Arguments: argument(t, input)})
		return answer{Output: outcome.Result.Output, Error: outcome.Result.Error, Logs: lines(outcome.Log)}
	}
}

func translated(t testing.TB, dir string, s subject, modules string) *manifests.Manifest {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.wasm"), s.module, 0o600))
	for name, library := range s.libraries {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".wasm"), library, 0o600))
	}
	file := filepath.Join(dir, "plugin.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"wasm": [`+modules+`]}`), 0o600))
	done, err := extism.Load(file)
	require.NoError(t, err)
	require.Len(t, done.Manifests, 1)
	return done.Manifests[0]
}
