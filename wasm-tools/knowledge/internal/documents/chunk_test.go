package documents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
)

// kept is a copy of a chunk.
type kept struct {
	ordinal, line                 int
	text, header, following, path string
}

// split returns the chunks of one document.
func split(t testing.TB, name, text string) ([]kept, []documents.Heading, documents.About) {
	t.Helper()
	p := documents.Project{Root: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(p.Root, name), []byte(text), 0o600))
	d, err := p.Get(name)
	require.NoError(t, err)
	var headings []documents.Heading
	r := documents.Reader{Heading: func(h documents.Heading) { headings = append(headings, h) }}
	var chunks []kept
	about, err := r.Read(p, d, func(c *documents.Chunk) error {
		chunks = append(chunks, kept{c.Ordinal, c.Line, string(c.Text), string(c.Header), string(c.Following), strings.Join(c.Headings(), " > ")})
		return nil
	})
	require.NoError(t, err)
	return chunks, headings, about
}

func texts(chunks []kept) (all []string) {
	for _, c := range chunks {
		all = append(all, c.text)
	}
	return all
}

var (
	short = strings.Repeat("word ", 39) + "word"  // 199 bytes
	long  = strings.Repeat("word ", 159) + "word" // 799
)

func TestChunksOfMarkdown(t *testing.T) {
	source := "\n# Guide\n\n" + short + "\n\n## Install ##\n\nText.\n```sh\n# no heading\n```\n### Deep\n" + long + "\n\n" + long + "\n\nNext\n====\n\nSub\n---\n" + short + "\n- a\n---\n"
	chunks, headings, about := split(t, "guide.md", source)
	assert.Equal(t, []string{
		"# Guide\n\n" + short,
		"## Install ##\n\nText.\n```sh\n# no heading\n```\n### Deep\n" + long,
		long,
		"Next\n====\n\nSub\n---\n" + short + "\n- a\n---",
	}, texts(chunks))
	var places []any
	for _, c := range chunks {
		places = append(places, c.ordinal, c.line, c.path)
	}
	assert.Equal(t, []any{0, 2, "Guide", 1, 6, "Guide > Install", 2, 15, "Guide > Install > Deep", 3, 17, "Next"}, places)
	assert.Equal(t, []documents.Heading{{1, "Guide", 2}, {2, "Install", 6}, {3, "Deep", 12}, {1, "Next", 17}, {2, "Sub", 20}}, headings)
	assert.Equal(t, documents.About{Encoding: "utf-8", Lines: 24}, about)
}

func TestHeadings(t *testing.T) {
	for source, want := range map[string][]documents.Heading{
		"#no\n####### no\n    # no\n#\n":        nil,
		"   # yes #x #\n":                       {{1, "yes #x", 1}},
		"# C#":                                  {{1, "C#", 1}},
		"~~~\n# no\n```\n# no\n~~~~\n# yes":     {{1, "yes", 6}},
		"```x`y\n# yes\n":                       {{1, "yes", 2}},
		"---\ntitle: no\n---\n# yes\n":          {{1, "yes", 4}},
		"> no\n---\n\n---\n|no|\n---\nno\n--\n": nil,
		"a\r\n===\r\n":                          {{1, "a", 1}},
	} {
		_, headings, _ := split(t, "a.md", source)
		assert.Equal(t, want, headings, source)
		_, headings, _ = split(t, "a.txt", source)
		assert.Empty(t, headings)
	}
}

func TestChunksOfCSV(t *testing.T) {
	row := `"O'Hara, ""Pat""","two` + "\n" + `lines",` + strings.Repeat("x", 930) + "\n"
	chunks, _, about := split(t, "people.csv", "\xef\xbb\xbfname,note,data\r\n"+row+row+row+"\n")
	assert.Equal(t, []string{strings.TrimSpace(row + row), strings.TrimSpace(row)}, texts(chunks))
	for _, c := range chunks {
		assert.Equal(t, "name,note,data", c.header)
	}
	assert.Equal(t, []int{2, 6}, []int{chunks[0].line, chunks[1].line})
	assert.Equal(t, documents.About{Encoding: "utf-8", Columns: "name,note,data", Records: 3, Lines: 8}, about)

	chunks, _, about = split(t, "empty.csv", "name,note\n")
	assert.Equal(t, []string{"name,note"}, texts(chunks))
	assert.Zero(t, about.Records)

	wide := strings.Repeat("column,", 100)
	chunks, _, _ = split(t, "wide.csv", wide+"\n1,2\n")
	assert.Equal(t, []string{wide + "\n1,2"}, texts(chunks), "a long header is a row like any other")
	assert.Empty(t, chunks[0].header)

	chunks, _, _ = split(t, "open.csv", "a,b\n\""+strings.Repeat("never closed\n", 1000))
	assert.Greater(t, len(chunks), 6)
}

func TestChunksOfHTML(t *testing.T) {
	chunks, headings, about := split(t, "page.html", "<html lang=de><title>Seite</title><h1>A</h1><p>"+short+"<h2>B</h2><p>x<script>no</script><p hidden>no")
	assert.Equal(t, []string{"# A\n\n" + short, "## B\n\nx"}, texts(chunks))
	assert.Equal(t, []documents.Heading{{1, "A", 0}, {2, "B", 0}}, headings)
	assert.Equal(t, documents.About{Encoding: "utf-8", Title: "Seite", Language: "de"}, about)
}

func TestLongLinesAreCut(t *testing.T) {
	chunks, _, _ := split(t, "a.txt", "first\n"+strings.Repeat("word ", 1000)+"\nlast")
	assert.Equal(t, []int{2, 2}, []int{chunks[1].line, chunks[2].line})
	assert.Equal(t, []int{1, 3}, []int{chunks[0].line, len(chunks)})
	assert.True(t, strings.HasPrefix(chunks[0].following, "word word"), chunks[0].following)
	assert.Len(t, chunks[0].following, 1024)
	assert.Empty(t, chunks[2].following)

	chunks, _, _ = split(t, "a.txt", strings.Repeat("字", 1000)+"。"+strings.Repeat("字", 1000))
	for _, c := range chunks {
		assert.True(t, utf8.ValidString(c.text))
	}
	chunks, _, _ = split(t, "a.txt", strings.Repeat("字", 600)+"。"+strings.Repeat("字", 600))
	assert.True(t, strings.HasSuffix(chunks[0].text, "。"))
}

// FuzzChunks: all of a text is in its chunks, once and in order, at the lines that they say; sizes are bounded; and how
// the text arrives makes no difference.
func FuzzChunks(f *testing.F) {
	for _, kind := range []string{".txt", ".md", ".csv"} {
		f.Add(kind, "# a\n\nb\n", 3, 0)
		f.Add(kind, "a\n```\n# b\n", 300, 1)
		f.Add(kind, "\"x\ny\",z\n", 500, 2)
		f.Add(kind, "字。 ", 1500, 4)
		f.Add(kind, strings.Repeat("a", 1990)+"\n", 3, 0)
		f.Add(kind, strings.Repeat("a", 2000)+"\n", 3, 0)
		f.Add(kind, strings.Repeat(" ", 5000)+"a\n", 3, 0)
	}
	f.Fuzz(func(t *testing.T, kind, text string, times, shift int) {
		if kind != ".txt" && kind != ".md" && kind != ".csv" || times < 0 || times > 2000 || strings.ContainsRune(text, 0) || len(text)*times > 300_000 {
			return
		}
		text = strings.Repeat(text, times)
		text = text[min(max(shift, 0), len(text)):]
		if !utf8.ValidString(text) {
			return // it would be decoded
		}
		chunks, _, _ := split(t, "a"+kind, text)
		text = strings.TrimPrefix(text, "\ufeff")
		var all strings.Builder
		if len(chunks) > 0 {
			all.WriteString(chunks[0].header)
		}
		lines := strings.Split(text, "\n")
		for i, c := range chunks {
			all.WriteString(c.text)
			assert.Equal(t, i, c.ordinal)
			assert.LessOrEqual(t, len(c.text)+len(c.header), documents.MaxChunk)
			assert.NotEmpty(t, strings.TrimSpace(c.text))
			first, _, _ := strings.Cut(c.text, "\n")
			assert.Contains(t, lines[c.line-1], strings.TrimSpace(first))
			assert.False(t, strings.Contains(c.following, "\n"))
		}
		assert.Equal(t, squeezed(text), squeezed(all.String()))
	})
}

func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}
