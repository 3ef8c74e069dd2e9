package page_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/caisson-run/caisson/wasm-tools/internal/page"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// hostile are beginnings and pieces that are repeated to make a page, each aimed at something
// that could take time or memory out of proportion.
var hostile = []struct{ name, start, piece string }{
	{"text", "", "lorem ipsum "},
	{"one word", "", "a"},
	{"nesting", "", "<div>"},
	{"nesting of formatting", "", "<b a=1><i b=2>"},
	{"paragraphs in formatting", strings.Repeat("<b a=1><i b=2>", 200), "<p>"},
	{"hidden nesting", "<div hidden>", "<span>"},
	{"end tags without a start", "", "</x>"},
	{"end tags far from their start", "<p><table><td>" + strings.Repeat("<span>", 240), "</p>"},
	{"blocks far from a paragraph", "<p><table><td>" + strings.Repeat("<span>", 240), "<br></div>"},
	{"cells", "<table><tr>", "<td>"},
	{"rows", "<table>", "<tr><td>a<td>b"},
	{"tables", "", "<table><tr><td>"},
	{"lists", "", "<ul><li>"},
	{"quotations", "", "<blockquote>a"},
	{"preformatted", "<pre>", "\n"},
	{"links", "", "<a href=/x>x</a>"},
	{"links left open", "", "<a href=/x>"},
	{"long base", "<base href=/" + strings.Repeat("b", 2000) + "/>", "<a href=x>"},
	{"headings", "", "<h1>"},
	{"attributes", "<p ", "a=b "},
	{"many attributes", "", "<p a b c d e f g h i j k l m n o p>"},
	{"style attributes", "<p style='", "display:block;"},
	{"entities", "", "&amp;&#x41;&CounterClockwiseContourIntegral;"},
	{"half entities", "", "&am"},
	{"less-than signs", "", "<"},
	{"declarations", "", "<!"},
	{"comment left open", "<!--", "--"},
	{"comments", "", "<!---->"},
	{"script left open", "<script>", "<!--<script>"},
	{"title left open", "<title>", "</titl"},
	{"titles", "", "<title>x</title>"},
	{"data", "", "<script type=application/ld+json>[1]</script>"},
	{"one block of data", "<script type=application/ld+json>", "["},
	{"meta", "", "<meta property=og:x content=y>"},
	{"drawings", "", "<svg><g>"},
	{"custom elements", "", "<a-b hidden>"},
	{"NUL", "", "\x00"},
	{"invalid UTF-8", "", "\xff"},
	{"mixed UTF-8", "", "ä\xffö"},
	{"invisible characters", "", "\u200b"},
	{"images", "", "<img alt=x>"},
	{"doctypes", "", "<!doctype html>"},
	{"plain text", "<plaintext>", "</plaintext>"},
	{"CDATA", "<svg>", "<![CDATA[x]]>"},
}

func pageOf(size int, start, piece string) []byte {
	return []byte(start + strings.Repeat(piece, (size-len(start))/len(piece)))
}

// TestHostilePages: a large page of anything is read soon, and the result is bounded.
func TestHostilePages(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			start := time.Now()
			p, err := page.Read(page.Source{URL: address, ContentType: "text/html", Body: pageOf(1<<18, h.start, h.piece)}, page.Options{})
			require.NoError(t, err)
			assert.Less(t, time.Since(start), 30*time.Second, "in proportion to its length: a page whose cost is quadratic takes hours")
			check(t, p, 100_000, 200)
		})
	}
}

func BenchmarkHostilePages(b *testing.B) {
	for _, h := range hostile {
		body := pageOf(5<<20, h.start, h.piece)
		b.Run(strings.ReplaceAll(h.name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := page.Read(page.Source{URL: address, ContentType: "text/html", Body: body}, page.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// check checks the properties that every page has.
func check(t *testing.T, p *page.Page, text, links int) {
	t.Helper()
	for _, part := range []string{p.Text, p.Title, p.Description, p.Language, p.Canonical, p.Refresh, p.Note, p.Type} {
		require.True(t, utf8.ValidString(part))
		for _, r := range strings.NewReplacer("\n", "", "\t", "", "\u00a0", "").Replace(part) {
			require.True(t, plain.Visible(r), "%q", r)
		}
	}
	require.LessOrEqual(t, utf8.RuneCountInString(p.Text), text)
	require.LessOrEqual(t, len(p.Links), links)
	require.LessOrEqual(t, len(p.Headings), 200)
	require.LessOrEqual(t, len(p.Meta), 60)
	seen := map[string]bool{}
	for _, link := range p.Links {
		require.False(t, seen[link.URL], link.URL)
		seen[link.URL] = true
		parsed, err := url.Parse(link.URL)
		require.NoError(t, err)
		require.Contains(t, []string{"http", "https"}, parsed.Scheme)
		require.NotEmpty(t, parsed.Hostname())
		require.Nil(t, parsed.User)
		require.Empty(t, parsed.Fragment)
		require.LessOrEqual(t, len(link.URL), 2048)
	}
	for _, block := range p.Data {
		require.True(t, json.Valid(block))
	}
	all, err := json.Marshal(p)
	require.NoError(t, err)
	require.Less(t, len(all), 6*text+links*4000+2_000_000, fmt.Sprintf("%d links", len(p.Links)))
}

func FuzzPage(f *testing.F) {
	for _, h := range hostile {
		f.Add("text/html", []byte(h.start+strings.Repeat(h.piece, 5)), false)
	}
	f.Add("text/html; charset=windows-1251", []byte("<meta charset=utf-8><title>\xcf</title><a href='//x/\xff'>"), true)
	f.Add("", []byte("\xff\xfe<\x00"), false)
	f.Fuzz(func(t *testing.T, contentType string, body []byte, targets bool) {
		p, err := page.Read(page.Source{URL: address, ContentType: contentType, Body: body}, page.Options{Text: 500, Links: 5, Targets: targets})
		if err == nil {
			check(t, p, 500, 5)
		}
	})
}

// FuzzHidden: whatever precedes it, a hidden element's text does not show.
func FuzzHidden(f *testing.F) {
	for _, h := range hostile {
		f.Add(h.start + strings.Repeat(h.piece, 3))
	}
	f.Fuzz(func(t *testing.T, before string) {
		if strings.Contains(before, "QZX") {
			return
		}
		const tag = "<div hidden>"
		if lastToken(before+tag) != tag {
			return // the text before leaves something open, such as a comment
		}
		p := readAsHTML(before + tag + `QZXHIDDEN<b>QZXHIDDEN</b><p>QZXHIDDEN</p>QZXHIDDEN</div>`)
		require.NotContains(t, p.Text, "QZXHIDDEN")
	})
}

// lastToken returns the last token of a page, as it was written, if it is a tag.
func lastToken(source string) string {
	tokens := html.NewTokenizer(strings.NewReader(source))
	last := ""
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return last
		case html.StartTagToken:
			last = string(tokens.Raw())
		default:
			last = ""
		}
	}
}

func readAsHTML(source string) *page.Page {
	p, err := page.Read(page.Source{URL: address, ContentType: "text/html; charset=utf-8", Body: []byte(source)}, page.Options{})
	if err != nil {
		panic(err)
	}
	return p
}
