package wasm

import (
	"bytes"
	"slices"
	"strings"
)

// SeededGenerators returns the names of the random number generators linked into a module that are
// seeded once for all later draws. If they were seeded before a snapshot, programs resumed from it
// repeat their output. The names are text for people, in a fixed order, without duplicates. The
// result is nil if none was found.
//
// The evidence is text in data segments, which stripping preserves, and the "name" section, which
// it removes:
//   - Go's math/rand and math/rand/v2, by the function names that Go keeps for its traces: the
//     sources that the Go runtime seeds. A program that uses these packages only with its own
//     sources does not link them. Standard packages may link them too: net/http does, and
//     crypto/rsa, for harmless coin tosses.
//   - Rust's rand, by a path in a panic's location or by name: the thread's generator.
//   - Rust's fastrand and C's srand, only by name, so never in a stripped module.
//   - C's arc4random, as in wasi-libc, by an assertion; TinyGo's runtime links it into its
//     programs.
//   - Python's random, by the name of CPython's type; it is part of the interpreter whether
//     or not a script imports it.
//   - JavaScript's Math.random, by QuickJS's assertions or by name, likewise.
//
// Generators that a program implements and seeds itself are not found, nor are keys of hash tables.
// An empty result is not proof: a text may be missing. A module may also contain a text by chance
// or on purpose. Use the result for warnings, not for decisions.
//
// The module m must be the result of [Inspect] for source. The time is proportional to the length
// of source.
func SeededGenerators(source []byte, m *Module) []string {
	found := make([]bool, len(seededGenerators))
	// The section is searched as a whole: a segment header splits a text only where its linker saw zeros.
	at, _ := m.section(SectionData)
	data := source[at.Content:at.End]
	for i, generator := range seededGenerators {
		found[i] = slices.ContainsFunc(generator.texts, func(text string) bool { return bytes.Contains(data, []byte(text)) })
	}
	for _, function := range FunctionNames(source, m) {
		for i, generator := range seededGenerators {
			found[i] = found[i] || generator.has(function)
		}
	}
	var names []string
	for i, generator := range seededGenerators {
		if found[i] {
			names = append(names, generator.name)
		}
	}
	return names
}

// seededGenerator is a generator and the evidence for it.
type seededGenerator struct {
	name      string
	texts     []string // in data segments
	functions []string // names of functions
	mangled   string   // a substring of a function name; empty for none
}

// seededGenerators lists the known generators. Go's function names are surrounded by zero bytes, so
// that text about them in a program does not match. C strings end in a zero byte but may begin
// within another string, since linkers merge common suffixes.
var seededGenerators = [...]seededGenerator{
	{name: "Go's math/rand", texts: []string{"\x00math/rand.(*runtimeSource).Int63\x00"}},
	{name: "Go's math/rand/v2", texts: []string{"\x00math/rand/v2.runtimeSource.Uint64\x00"}},
	{name: "Rust's rand", texts: []string{"/src/rngs/thread.rs", `\src\rngs\thread.rs`}, mangled: "4rand4rngs6thread"},
	{name: "Rust's fastrand", mangled: "8fastrand10global_rng"},
	{name: "C's srand", functions: []string{"srand", "srandom", "srand48", "seed48"}},
	{name: "C's arc4random", texts: []string{"arc4random_buf\x00"}, functions: []string{"arc4random_buf"}},
	{name: "Python's random", texts: []string{"_random.Random\x00"}},
	{name: "JavaScript's Math.random", texts: []string{"__JS_EvalInternal\x00"}, functions: []string{"js_math_random"}},
}

func (g *seededGenerator) has(function string) bool {
	return slices.Contains(g.functions, function) || g.mangled != "" && strings.Contains(function, g.mangled)
}
