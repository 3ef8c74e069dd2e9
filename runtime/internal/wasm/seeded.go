package wasm

import (
	"bytes"
	"slices"
	"strings"
)

// SeededGenerators names the generators of random numbers that a module links and that are
// seeded once for all that the program draws later, not by each draw. A program that is
// resumed from a snapshot repeats what they give, if they were seeded before the snapshot.
// The names are words for people, in a fixed order, each once; nil if none was found.
//
// The evidence is texts in data segments, which stripping leaves, and the "name" section,
// which it does not:
//   - Go's math/rand and math/rand/v2, by the function names that Go keeps for its traces:
//     the sources that the Go runtime seeds. They are not linked by a program that uses
//     these packages with sources of its own making alone. Standard packages may link them
//     too: net/http does, and crypto/rsa, for tosses of a coin that do no harm.
//   - Rust's rand, by a path in a panic's location or by name: the thread's generator.
//   - Rust's fastrand and C's srand, by name alone, so never in a stripped module.
//   - C's arc4random, as wasi-libc has it, by an assertion; TinyGo's runtime links it into
//     its programs.
//   - Python's random, by the name of CPython's type; it is part of the interpreter whether
//     or not a script imports it.
//   - JavaScript's Math.random, by QuickJS's assertions or by name, likewise.
//
// What a program seeds by itself is not found, nor are keys of hash tables. No name is no
// proof: a text may be missing, or stand in a module by chance or intent. So the result is
// for warnings, not for decisions.
//
// The module m must be what [Inspect] returned for source. It takes time in proportion to
// the length of source.
func SeededGenerators(source []byte, m *Module) []string {
	found := make([]bool, len(seededGenerators))
	data := dataSection(source, m)
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

// seededGenerator is a generator, and what a module that links it is known by.
type seededGenerator struct {
	name      string
	texts     []string // in data segments
	functions []string // names of functions
	mangled   string   // a part of the name of a function, empty for none
}

// seededGenerators are all that can be found. Function names that Go keeps stand between
// zeros, so that the text of a program about them is not taken for one. C's strings end in
// one and may begin within another, since linkers merge them by their ends.
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

// dataSection returns the contents of the data section. A text is looked for in it as a
// whole: where a text is cut by the head of a segment, its linker saw zeros.
func dataSection(source []byte, m *Module) []byte {
	at := slices.IndexFunc(m.Sections, func(s Section) bool { return s.ID == SectionData })
	if at < 0 {
		return nil
	}
	return source[m.Sections[at].Content:m.Sections[at].End]
}
