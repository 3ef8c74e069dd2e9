package wasm

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texted is a module with one function, whose name is given, and a text in memory.
func texted(function, text string) []byte {
	names := vector(concat(leb(0), name(function)))
	return module(oneType, oneFunc, oneMemory, oneBody,
		section(SectionData, vector(concat(leb(0), i32Zero, name(text)))),
		custom("name", raw(namesFunctions), leb(len(names)), names))
}

func seededIn(t *testing.T, source []byte) []string {
	t.Helper()
	m := inspected(t, source)
	return SeededGenerators(source, m)
}

func TestSeededGenerators(t *testing.T) {
	for title, test := range map[string]struct {
		function, text string
		want           []string
	}{
		"nothing":                    {"main", "hello", nil},
		"Go, math/rand":              {"main", "\x00math/rand.(*runtimeSource).Int63\x00math/rand.Int\x00", []string{"Go's math/rand"}},
		"Go, math/rand/v2":           {"main", "iter.init\x00math/rand/v2.runtimeSource.Uint64\x00", []string{"Go's math/rand/v2"}},
		"Go, a source of one's own":  {"main", "\x00math/rand/v2.(*ChaCha8).Uint64\x00math/rand.(*rngSource).Int63\x00", nil},
		"Go, a text about it":        {"main", "see math/rand/v2.runtimeSource.Uint64\x00", nil},
		"Rust, a location":           {"main", "/home/a/.cargo/registry/src/index/rand-0.9.5/src/rngs/thread.rs", []string{"Rust's rand"}},
		"Rust, a location elsewhere": {"main", `C:\registry\rand-0.8.5\src\rngs\thread.rs`, []string{"Rust's rand"}},
		"Rust, by name":              {"_RNvNtNtCs7mkolqw5VJD_4rand4rngs6thread3rng", "", []string{"Rust's rand"}},
		"Rust, only a generator":     {"_RNvXsl_NtCsaQc94C35JrO_11rand_chacha6chacha", "rand_chacha-0.9.0/src/guts.rs", nil},
		"Rust, fastrand":             {"_RNvNtCs1eCCWPNrf0g_8fastrand10global_rng11random_seed", "", []string{"Rust's fastrand"}},
		"C, srand":                   {"srand", "", []string{"C's srand"}},
		"C, srandom":                 {"srandom", "", []string{"C's srand"}},
		"C, rand alone":              {"rand", "srand", nil},
		"C, another function":        {"my_srand", "", nil},
		"C, arc4random":              {"main", "nan\x00arc4random_buf\x00inf", []string{"C's arc4random"}},
		"Python":                     {"main", "\x00_io.BufferedRandom\x00_random.Random\x00", []string{"Python's random"}},
		"QuickJS, stripped":          {"main", "\x00__JS_EvalInternal\x00", []string{"JavaScript's Math.random"}},
		"QuickJS, by name":           {"js_math_random", "", []string{"JavaScript's Math.random"}},
		"two, in the table's order":  {"srand", "\x00math/rand/v2.runtimeSource.Uint64\x00", []string{"Go's math/rand/v2", "C's srand"}},
	} {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want, seededIn(t, texted(test.function, test.text)))
		})
	}
}

// TestSeededGeneratorsReadsTwoSections: names elsewhere in a module prove nothing.
func TestSeededGeneratorsReadsTwoSections(t *testing.T) {
	everyText := texts()
	assert.Len(t, seededIn(t, texted("main", everyText)), 6, "those that a stripped module shows")
	assert.Empty(t, seededIn(t, module(oneType, oneFunc, oneBody, custom("notes", []byte(everyText)))))
	assert.Empty(t, seededIn(t, module()))
	exported := module(oneType, oneFunc, section(SectionExport, vector(concat(name("srand"), raw(0, 0)))), oneBody)
	assert.Empty(t, seededIn(t, exported))
	broken := module(oneType, oneFunc, oneBody, custom("name", raw(namesFunctions), leb(9), vector(concat(leb(0), name("srand")))))
	assert.Empty(t, seededIn(t, broken))
}

// texts are all texts that are looked for.
func texts() string {
	var all strings.Builder
	for _, generator := range seededGenerators {
		all.WriteString(strings.Join(generator.texts, ""))
	}
	return all.String()
}

// FuzzSeededGenerators: for any module, SeededGenerators returns names from its table, each once and in that order, and
// the same again. It changes no byte. Stripping a module leads to no new names, nor does a custom section.
func FuzzSeededGenerators(f *testing.F) {
	f.Add(module())
	f.Add(everything())
	f.Add(texted("srandom", texts()))
	f.Add(texted("_RNvNtNtCs7mkolqw5VJD_4rand4rngs6thread3rng", strings.Repeat("\x00math/rand.", 50)))
	var known []string
	for _, generator := range seededGenerators {
		known = append(known, generator.name)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		m, err := Inspect(source)
		if err != nil {
			return
		}
		before := bytes.Clone(source)
		found := SeededGenerators(source, m)
		require.Equal(t, before, source)
		require.Equal(t, found, SeededGenerators(source, m))
		last := -1
		for _, generator := range found {
			at := slices.Index(known, generator)
			require.Greater(t, at, last, "%q", found)
			last = at
		}
		require.Subset(t, found, seededIn(t, StripCustom(source, m, none)))
		if noted := concat(source, custom("notes", []byte(texts()))); len(m.Custom) < 100 {
			require.Equal(t, found, seededIn(t, noted))
		}
	})
}
