package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/page"
)

func TestHiddenTextIsLeftOut(t *testing.T) {
	for name, source := range map[string]string{
		"attribute":                 `<div hidden>secret</div>`,
		"attribute with a value":    `<div hidden=until-found>secret</div>`,
		"display":                   `<div style="display:none">secret</div>`,
		"display, shouted":          `<DIV STYLE="x:y;DISPLAY : NONE ! important ; a:b">secret</DIV>`,
		"visibility":                `<i style="visibility: hidden">secret</i>`,
		"opacity":                   `<p style="opacity:0.0">secret</p>`,
		"font size":                 `<p style="font-size: 0px;">secret</p>`,
		"for screens alone":         `<p aria-hidden=TRUE>secret</p>`,
		"comment":                   `<!-- secret -->`,
		"script":                    `<script>secret</script>`,
		"unclosed script":           `visible<script>secret<p>secret`,
		"style":                     `<style>secret</style>`,
		"noscript":                  `<noscript>secret</noscript>`,
		"template":                  `<template><p>secret</div></template>`,
		"select":                    `<select><option>secret</select>`,
		"drawing":                   `<svg><text>secret</text></svg>`,
		"closed dialog":             `<dialog>secret</dialog>`,
		"inside hidden":             `<div hidden><p>secret<div>secret</div><span>secret</div>`,
		"deep inside hidden":        `<div hidden>` + strings.Repeat("<div>", 2000) + "secret" + strings.Repeat("</div>", 2000) + `secret</div>`,
		"deep outside hidden":       strings.Repeat("<div>", 2000) + `<div hidden><div>secret</div>secret</div>`,
		"elements of one's own":     `<a-b hidden><c-d>secret</c-d>secret</a-b>`,
		"formatting across":         `<div hidden><b>secret</div></b>`,
		"invisible characters only": "<p>\u200b\u2060\U000e0041</p>",
	} {
		t.Run(name, func(t *testing.T) {
			p := read(t, "<p>visible</p>"+source, page.Options{})
			assert.NotContains(t, p.Text, "secret")
			if !strings.Contains(name, "unclosed") {
				after := read(t, source+"<p>visible</p>", page.Options{})
				assert.Equal(t, "visible", after.Text, "what follows shows")
			}
		})
	}
}

func TestShownTextStays(t *testing.T) {
	for name, source := range map[string]string{
		"a paragraph that is over":   `<p hidden>x<p>shown`,
		"an item that is over":       `<ul><li hidden>x<li>shown</ul>`,
		"a cell that is over":        `<table><tr><td hidden>x<td>shown</table>`,
		"a row that is over":         `<table><tr hidden><td>x<tr><td>shown</table>`,
		"a parent that is over":      `<div><p hidden>x</div>shown`,
		"a formatting that is over":  `<b><span hidden>x</b>shown`,
		"a page that a script shows": `<html hidden><body style="display:none">shown`,
		"a drawing left open":        `<svg><g><div>shown</div>`,
		"nearly nothing":             `<p style="opacity:0.05;font-size:10px;display:block">shown`,
		"end tags without a start":   strings.Repeat("</div></p></td></table></svg></h1>", 100) + `<div>shown`,
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, read(t, source, page.Options{}).Text, "shown")
		})
	}
}

func TestTextIsBounded(t *testing.T) {
	p := read(t, "<ul><li>äöü<li>def</ul>", page.Options{Text: 5})
	assert.Equal(t, "- äöü", p.Text)
	assert.True(t, p.MoreText)

	p = read(t, "<p>abc", page.Options{Text: 3})
	assert.Equal(t, "abc", p.Text)
	assert.False(t, p.MoreText)

	for body, more := range map[string]bool{"äöü\r\nd": false, "äöü\r\nde": true} {
		plain, err := page.Read(page.Source{URL: address, ContentType: "text/plain", Body: []byte(body)}, page.Options{Text: 5})
		require.NoError(t, err)
		assert.Equal(t, "äöü\nd", plain.Text)
		assert.Equal(t, more, plain.MoreText)
	}
}

func TestTargets(t *testing.T) {
	p := read(t, `<p>see <a href="/a">the list</a>, <a href="#b">below</a> or <a href="/c"></a>ask`, page.Options{Targets: true})
	assert.Equal(t, "see the list <https://www.example.com/a>, below or ask", p.Text)
}

func TestLinks(t *testing.T) {
	for _, test := range []struct{ name, source, want string }{
		{"relative", `<a href="a b/ü?q=1">x</a>`, "https://www.example.com/docs/a%20b/%C3%BC?q=1"},
		{"with line breaks", "<a href=' \n/a\tb\n '>x</a>", "https://www.example.com/ab"},
		{"host in upper case", `<a href="HTTP://EXAMPLE.org">x</a>`, "http://example.org/"},
		{"user removed", `<a href="https://u:p@example.org/">x</a>`, "https://example.org/"},
		{"fragment removed", `<a href="/a#b">x</a>`, "https://www.example.com/a"},
		{"base", `<base href="https://base.example/x/"><base href="https://second.example/"><a href="y">x</a>`, "https://base.example/x/y"},
		{"relative base", `<base href="/up/"><a href="y">x</a>`, "https://www.example.com/up/y"},
		{"useless base", `<base href="javascript:x"><a href="y">x</a>`, "https://www.example.com/docs/y"},
		{"above the root", `<a href="../../../y">x</a>`, "https://www.example.com/y"},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, []page.Link{{URL: test.want, Text: "x"}}, read(t, test.source, page.Options{}).Links)
		})
	}
	for _, href := range []string{"", "#top", "javascript:alert(1)", "mailto:a@b.example", "data:text/html,x", "ftp://x/", "http://", "https://a b/", "::", "%zz", strings.Repeat("a", 3000), "?x=1"} {
		assert.Empty(t, read(t, `<a href="`+href+`">x</a>`, page.Options{}).Links, href)
	}
}

func TestLinksAreBounded(t *testing.T) {
	p := read(t, `<a href=1>one</a><a href=2></a><a href=1>again</a><a href=2>two</a>`, page.Options{Links: 2})
	assert.Equal(t, []page.Link{{URL: "https://www.example.com/docs/1", Text: "one"}, {URL: "https://www.example.com/docs/2", Text: "two"}}, p.Links)
	assert.False(t, p.MoreLinks)
	assert.True(t, read(t, `<a href=1>one</a><a href=2>`, page.Options{Links: 1}).MoreLinks)
	assert.True(t, read(t, strings.Repeat(`<a href=1>one</a>`, 40_000), page.Options{}).MoreLinks)

	var long strings.Builder
	for i := range 500 {
		fmt.Fprintf(&long, "<a href=%d%s>", i, strings.Repeat("x", 1500))
	}
	p = read(t, long.String(), page.Options{Links: 1000})
	assert.True(t, p.MoreLinks)
	assert.Less(t, len(p.Links), 200)
}

func TestWhatAPageSaysAboutItself(t *testing.T) {
	p := read(t, `<head><meta http-equiv=refresh content="0; URL='/new'"><meta property=og:title content=T><meta name=og:description content=D>
		<link rel="alternate canonical" href=/c>`, page.Options{})
	assert.Equal(t, "https://www.example.com/new", p.Refresh)
	assert.Equal(t, "T", p.Title)
	assert.Equal(t, "D", p.Description)
	assert.Equal(t, "https://www.example.com/c", p.Canonical)
	assert.Equal(t, "H", read(t, `<h1>H</h1>`, page.Options{}).Title)
	assert.Empty(t, read(t, `<svg><title>icon</title></svg>`, page.Options{}).Title)
	assert.Len(t, []rune(read(t, `<title>`+strings.Repeat("ä", 1000), page.Options{}).Title), 300)
}

func TestData(t *testing.T) {
	block := func(json string) string { return `<script type="application/ld+json">` + json + `</script>` }
	for json, want := range map[string]string{
		`{"a":1.50,"b":["x<y",null,true]}`: `{"a":1.50,"b":["x<y",null,true]}`,
		`{"a":1,"a":2}`:                    `{"a":2}`,
		`"text\u0000\u200b"`:               `"text"`,
		``:                                 ``,
		`{`:                                ``,
		`{} {}`:                            ``,
		strings.Repeat("1", 101):           ``,
		strings.Repeat("[", 40) + strings.Repeat("]", 40):         ``,
		strings.Repeat("[", 20) + strings.Repeat("]", 20):         strings.Repeat("[", 20) + strings.Repeat("]", 20),
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000): ``,
		`"` + strings.Repeat("a", 1<<17) + `"`:                    ``,
	} {
		p := read(t, block(json), page.Options{})
		if want == "" {
			assert.Empty(t, p.Data)
		} else if assert.Len(t, p.Data, 1, json) {
			assert.Equal(t, want, string(p.Data[0]))
		}
	}
	assert.Len(t, read(t, strings.Repeat(block("1"), 20), page.Options{}).Data, 10)
	assert.Empty(t, read(t, `<script>{"a":1}</script><template>`+block("1")+`</template>`, page.Options{}).Data)
}
