package page_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/page"
)

func TestCharsets(t *testing.T) {
	for _, test := range []struct{ name, contentType, body, want string }{
		{"UTF-8 by itself", "text/html", "<p>äö€", "äö€"},
		{"UTF-8 with a mark", "text/html; charset=windows-1251", "\xef\xbb\xbf<p>ä", "ä"},
		{"western by itself", "text/html", "<p>caf\xe9 \x93x\x94 \x80", "café “x” €"},
		{"latin 1 is western", `text/html; charset="ISO-8859-1"`, "<p>\x80\xe4", "€ä"},
		{"western, as a meta element says", "text/html", "<meta charset=windows-1252><p>\xe4", "ä"},
		{"the older meta element", "text/html", `<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=windows-1251"><p>` + "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"},
		{"the header counts more", "text/html; charset=windows-1251", "<meta charset=windows-1252><p>\xcf", "П"},
		{"a meta element in a comment", "text/html", "<!-- <meta charset=windows-1251> --><p>\xe4", "ä"},
		{"Latin 9", "text/html; charset=iso-8859-15", "<p>\xa4", "€"},
		{"Latin 2", "text/html; charset=iso-8859-2", "<p>\xb1", "ą"},
		{"Windows-1250", "text/html; charset=windows-1250", "<p>\xb9", "ą"},
		{"Shift JIS", "text/html; charset=Shift_JIS", "<p>abc \x83\x65", "abc テ"},
		{"a charset that nobody knows", "text/html; charset=none", "<p>caf\xe9", "café"},
		{"KOI8-R", "text/html; charset=koi8-r", "<p>\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"},
		{"UTF-8 under a wrong name", "text/html; charset=iso-8859-1", "<p>ä", "ä"},
		{"damaged UTF-8", "text/html", "<p>äöü \xff ß", "äöü \ufffd ß"},
		{"UTF-16, little", "text/html", "\xff\xfe<\x00p\x00>\x00\xe4\x00=\xd8\x00\xde", "ä😀"},
		{"UTF-16, big", "text/html; charset=utf-16be", "\x00<\x00p\x00>\x00\xe4\xd8\x3d\xde\x00", "ä😀"},
		{"half a pair", "text/plain", "\xfe\xff\x00a\xd8\x3d\x00b", "a\ufffdb"},
		{"a meta element cannot be UTF-16", "text/html", "<meta charset=utf-16><p>ä", "ä"},
		{"an entity", "text/html", "<p>&auml;&#xe4;&#0;&#xd800;&bogus;", "ää\ufffd\ufffd&bogus;"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := page.Read(page.Source{URL: address, ContentType: test.contentType, Body: []byte(test.body)}, page.Options{})
			require.NoError(t, err)
			assert.Equal(t, test.want, p.Text)
			assert.Empty(t, p.Note)
		})
	}
}

func TestACutBodyEndsInAWholeCharacter(t *testing.T) {
	p, err := page.Read(page.Source{URL: address, ContentType: "text/html", Body: []byte("<p>ä\xc3"), Cut: true}, page.Options{})
	require.NoError(t, err)
	assert.Equal(t, "ä", p.Text)
}

func TestLargePagesAreCut(t *testing.T) {
	for contentType, body := range map[string]string{
		"text/html":                       "<p>" + strings.Repeat("ä", 3<<20) + "end",
		"text/html; charset=windows-1252": "<p>" + strings.Repeat("\x80", 8<<20) + "end",
		"text/html; charset=utf-16le":     strings.Repeat("\xac\x20", 4<<20) + "e\x00",
	} {
		p, err := page.Read(page.Source{URL: address, ContentType: contentType, Body: []byte(body)}, page.Options{Text: 10 << 20})
		require.NoError(t, err)
		assert.LessOrEqual(t, len(p.Text), 8<<20)
		assert.NotContains(t, p.Text, "end")
		assert.Equal(t, "the page is larger than this tool reads: its end is missing", p.Note)
		assert.True(t, utf8.ValidString(p.Text))
	}
}

func TestMedia(t *testing.T) {
	for _, test := range []struct{ contentType, body, wantType, wantText string }{
		{"text/html", "<p>a", "text/html", "a"},
		{"application/xhtml+xml", "<p>a</p>", "application/xhtml+xml", "a"},
		{"TEXT/HTML;;charset", "<p>a", "text/html", "a"},
		{"text/plain", "<p>a\r\nb\x00", "text/plain", "<p>a\nb"},
		{"application/json", `{"a": 1}`, "application/json", `{"a": 1}`},
		{"application/activity+json", `{}`, "application/activity+json", `{}`},
		{"application/atom+xml", `<feed/>`, "application/atom+xml", `<feed/>`},
		{"text/csv", "a,b\n", "text/csv", "a,b\n"},
		{"", "\n <html><p>a", "text/html", "a"},
		{"", "a plain text", "text/plain", "a plain text"},
		{"application/octet-stream", "<?xml version='1.0'?><a/>", "text/plain", "<?xml version='1.0'?><a/>"},
		{"text/html", "", "text/html", ""},
	} {
		p, err := page.Read(page.Source{URL: address, ContentType: test.contentType, Body: []byte(test.body)}, page.Options{})
		require.NoError(t, err, test.contentType)
		assert.Equal(t, test.wantType, p.Type)
		assert.Equal(t, test.wantText, p.Text)
	}
	for contentType, want := range map[string]string{
		"image/png":                "it is image/png, which has no text that this tool can read",
		"image/svg+xml":            "it is image/svg+xml, which has no text that this tool can read",
		"application/pdf; x=y":     "it is application/pdf, which has no text that this tool can read",
		"application/octet-stream": "it is binary data of a type that the server does not name",
		"no\u200bnsense":           "it is nonsense, which has no text that this tool can read",
	} {
		_, err := page.Read(page.Source{URL: address, ContentType: contentType, Body: []byte("\x89PNG\x00")}, page.Options{})
		assert.EqualError(t, err, want, contentType)
	}
}
