package tool

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckOfEmissions(t *testing.T) {
	part := func(f float64) *float64 { return &f }
	value := func(text string) json.RawMessage { return json.RawMessage(text) }
	type test struct {
		emission Emission
		wrong    string // in the error; empty for none
	}
	tests := []test{
		{Emission{Type: EmitText, Text: "a"}, ""},
		{Emission{Type: EmitText, Text: "\x1b[31m\x00\n"}, ""},
		{Emission{Type: EmitText}, "an emission of type text needs text"},
		{Emission{Type: EmitText, Text: "a\xff"}, "not valid UTF-8"},
		{Emission{Type: EmitText, Text: "a", Data: value("1")}, "an emission of type text takes no data"},
		{Emission{Type: EmitText, Text: "a", Fraction: part(0)}, "an emission of type text takes no fraction"},
		{Emission{Type: EmitText, Text: "a", Partial: true}, "an emission of type text takes no partial"},
		{Emission{Type: EmitJSON, Data: value(`{"a":[null]}`)}, ""},
		{Emission{Type: EmitJSON, Data: value("null")}, ""},
		{Emission{Type: EmitJSON}, "an emission of type json needs data"},
		{Emission{Type: EmitJSON, Data: value(`{`)}, "an emission of type json needs data"},
		{Emission{Type: EmitJSON, Data: value(`1 2`)}, "an emission of type json needs data"},
		{Emission{Type: EmitJSON, Data: value("\"\xff\"")}, "not valid UTF-8"},
		{Emission{Type: EmitJSON, Data: value("1"), Text: "a"}, "an emission of type json takes no text"},
		{Emission{Type: EmitProgress, Text: "searching"}, ""},
		{Emission{Type: EmitProgress, Fraction: part(0)}, ""},
		{Emission{Type: EmitProgress, Fraction: part(1), Text: "done"}, ""},
		{Emission{Type: EmitProgress}, "an emission of type progress needs text or fraction"},
		{Emission{Type: EmitProgress, Fraction: part(1.01)}, "progress with the fraction 1.01; want 0 to 1"},
		{Emission{Type: EmitProgress, Fraction: part(-1)}, "want 0 to 1"},
		{Emission{Type: EmitProgress, Fraction: part(math.NaN())}, "want 0 to 1"},
		{Emission{Type: EmitProgress, Fraction: part(math.Inf(1))}, "want 0 to 1"},
		{Emission{Type: EmitImage, Data: value(`"iVBORw=="`), MIMEType: "image/png"}, ""},
		{Emission{Type: EmitImage, Data: value(`"iVBORw=="`), MIMEType: "image/svg+xml", Partial: true}, ""},
		{Emission{Type: EmitImage, Data: value(`"\/\/\/\/\n\/\/8="`), MIMEType: "image/png"}, ""},
		{Emission{Type: EmitImage, Data: value(`"iVBORw=="`), MIMEType: "image/png", Text: "a"}, "takes no text"},
		{Emission{Type: EmitLink, Data: value(`"https://example.com/a?b"`), Text: "Example"}, ""},
		{Emission{Type: EmitLink, Data: value(`"http://example.com"`)}, ""},
		{Emission{Type: EmitLink, Text: "a"}, "needs data, the URL of a page"},
		{Emission{}, `there is no type of emission ""`},
		{Emission{Type: "\x1b[2J"}, "there is no type of emission \"\uFFFD[2J\""},
		{Emission{Type: EmitText, Text: strings.Repeat("a", MaxEmission)}, ""},
		{Emission{Type: EmitText, Text: strings.Repeat("a", MaxEmission+1)}, "an emission has 1048577 bytes; at most 1048576 are taken"},
		{Emission{Type: EmitImage, MIMEType: "image/" + strings.Repeat("a", MaxEmission)}, "at most 1048576 are taken"},
	}
	for _, data := range []string{`"iVBORw"`, `"iVBORw==`, `"iVB=Rw=="`, `"\u00"`, `"===="`, `""`, `"`, `null`, ``, `[1]`} {
		tests = append(tests, test{Emission{Type: EmitImage, Data: value(data), MIMEType: "image/png"}, "needs data, the image in base64"})
	}
	for _, mimeType := range []string{"", "image/", "text/html", "image/png\r\nSet-Cookie: a=b", "image/" + strings.Repeat("a", 128)} {
		tests = append(tests, test{Emission{Type: EmitImage, Data: value(`"iVBORw=="`), MIMEType: mimeType}, "needs mime_type, such as image/png"})
	}
	for _, link := range []string{`"javascript:alert(1)"`, `"https://example.com@evil.example/"`, `"https://:443/"`, `"/a"`, `"https://example.com/\n"`, `1`} {
		tests = append(tests, test{Emission{Type: EmitLink, Data: value(link)}, "needs data, the URL of a page"})
	}
	for _, test := range tests {
		err := test.emission.Check()
		if test.wrong == "" {
			assert.NoError(t, err, "%.200v", test.emission)
			continue
		}
		assert.ErrorContains(t, err, test.wrong, "%.200v", test.emission)
	}
}

// FuzzImage: a valid image is one that the standard library decodes to at least one byte.
func FuzzImage(f *testing.F) {
	for _, text := range []string{`"iVBORw=="`, `"\/\/8="`, `"AAAA\nAA=="`, `"AA==\n"`, `"A\u0041AA"`, `""`, `null`, `[1]`, `"===="`, `"AA=A"`, `"A==="`, ` "AAAA"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		e := Emission{Type: EmitImage, Data: value, MIMEType: "image/png"}
		err := e.Check()
		var image []byte
		failed := json.Unmarshal(value, &image)
		if err == nil {
			require.NoError(t, failed)
			require.NotEmpty(t, image)
			return
		}
		if failed == nil && len(image) > 0 && len(value) <= MaxEmission && strings.HasPrefix(string(value), `"`) && strings.HasSuffix(string(value), `"`) {
			require.ErrorContains(t, err, "UTF-8")
		}
	})
}

func BenchmarkCheckOfEmissions(b *testing.B) {
	for name, e := range map[string]Emission{
		"image": {Type: EmitImage, MIMEType: "image/png", Data: json.RawMessage(`"` + strings.Repeat("abcd", 1<<18-10) + `"`)},
		"json":  {Type: EmitJSON, Data: json.RawMessage(`[` + strings.Repeat("[1],", 1<<18-10) + `1]`)},
		"text":  {Type: EmitText, Text: strings.Repeat("é", 1<<19)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := e.Check(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
