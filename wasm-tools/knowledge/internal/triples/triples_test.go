package triples_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/triples"
)

func read(t testing.TB, name, text string) (all []triples.Triple, bad []int) {
	t.Helper()
	err := triples.Read(strings.NewReader(text), triples.FormatOf(name), func(triple triples.Triple) error {
		all = append(all, triple)
		return nil
	}, func(line int, err error) {
		assert.Error(t, err)
		bad = append(bad, line)
	})
	require.NoError(t, err)
	return all, bad
}

func thing(name string) triples.Term { return triples.Term{Name: name} }

func TestTabsAndJSON(t *testing.T) {
	want := []triples.Triple{{thing("Ada"), thing("knows"), thing("Charles"), 2}, {thing("猫"), thing("is a"), thing("动物"), 4}}
	all, bad := read(t, "x.Triples.TSV", "\ufeffsubject\tpredicate\tobject\r\nAda\tknows\tCharles\r\n# comment\n猫\t is a \t动物\n\na\tb\na\tb\tc\td\na\t\tc\n\xff\tb\tc")
	assert.Equal(t, want, all)
	assert.Equal(t, []int{6, 7, 8, 9}, bad)

	all, bad = read(t, "x.triples.jsonl", "\n"+`{"subject":"Ada","predicate":"knows","object":"Charles"}`+"\n{\n"+`{"subject":"猫","predicate":"is a","object":"动物","since":1}`+"\n{\"subject\":\"a\"}\n[]\n{\"subject\":1,\"predicate\":\"a\",\"object\":\"b\"}")
	assert.Equal(t, want, all)
	assert.Equal(t, []int{3, 5, 6, 7}, bad)
	assert.Nil(t, triples.FormatOf("x.tsv"))
}

func TestNTriples(t *testing.T) {
	iri := func(iri, name string) triples.Term { return triples.Term{Name: name, IRI: iri} }
	const e = "http://example.org/"
	for line, want := range map[string]triples.Triple{
		`<http://example.org/Ada_Lovelace> <http://example.org/v#knows> <http://example.org/Charles%20Babbage/> . # yes`: {iri(e+"Ada_Lovelace", "Ada Lovelace"), iri(e+"v#knows", "knows"), iri(e+"Charles%20Babbage/", "Charles Babbage"), 1},
		`_:b1 <http://example.org/p> "a \"b\" \\ \u732b\U0001F431\n"@en-GB .`:                                            {iri("_:b1", "_:b1"), iri(e+"p", "p"), triples.Term{Name: "a \"b\" \\ 猫🐱\n", IsValue: true}, 1},
		"<http://example.org/a>\t<http://example.org/p>\t\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>.":             {iri(e+"a", "a"), iri(e+"p", "p"), triples.Term{Name: "1", IsValue: true}, 1},
		`<http://example.org/a> <http://example.org/p> "" .`:                                                             {iri(e+"a", "a"), iri(e+"p", "p"), triples.Term{IsValue: true}, 1},
	} {
		all, bad := read(t, "a.nt", line)
		assert.Empty(t, bad, line)
		assert.Equal(t, []triples.Triple{want}, all)
	}
	for _, line := range []string{
		"a b c .", "<a> <b> <c>", "<a> <b> .", `"a" <b> <c> .`, `<a> _:b <c> .`, `<a> "b" <c> .`, `<a> <b> "c .`, `<a> <b> "c"@ .`, `<a> <b> "\q" .`,
		`<a> <b> "\u12" .`, `<a> <b> "\ud800" .`, "<a> <b> <c> . <d>", "<> <b> <c> .", "<a> <b> \"\xff\" .", `<a> <b> "c"^^<d .`, `<a> <b> "\`, "_:", "_: <b> <c> .",
	} {
		all, bad := read(t, "a.nt", line)
		assert.Empty(t, all, line)
		assert.Equal(t, []int{1}, bad, line)
	}
}

func TestLongLinesAndErrors(t *testing.T) {
	all, bad := read(t, "x.triples.tsv", "a\tb\t"+strings.Repeat("x", 200_000)+"\na\tb\tc\n"+strings.Repeat("x", 200_000))
	assert.Equal(t, []triples.Triple{{thing("a"), thing("b"), thing("c"), 2}}, all)
	assert.Equal(t, []int{1, 3}, bad)
	enough := errors.New("enough")
	err := triples.Read(strings.NewReader("a\tb\tc\n"), triples.FormatOf("x.triples.tsv"), func(triples.Triple) error { return enough }, func(int, error) {})
	assert.ErrorIs(t, err, enough)
}

// FuzzNTriples: no line causes a panic, and the subjects, predicates and things of all triples have names.
func FuzzNTriples(f *testing.F) {
	f.Add(`<a> <b> "c\u0041\U00000041\t"@en . # x`)
	f.Add(`_:a <b> _:c .`)
	f.Fuzz(func(t *testing.T, line string) {
		all, _ := read(t, "a.nt", line)
		for _, triple := range all {
			assert.NotEmpty(t, triple.Subject.Name)
			assert.NotEmpty(t, triple.Predicate.Name)
			assert.True(t, triple.Object.IsValue || triple.Object.Name != "")
		}
	})
}
