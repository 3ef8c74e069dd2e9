package page_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/page"
)

// TestConvertWritesWhatReadReturns: Convert writes the text that Read returns.
func TestConvertWritesWhatReadReturns(t *testing.T) {
	files, err := filepath.Glob("testdata/*.html")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var sources [][]byte
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		sources = append(sources, source)
	}
	sources = append(sources, nil, []byte("<p>caf\xe9"), []byte("\xff\xfe<\x00p\x00>\x00\xe4\x00"), []byte("\ufeff<h1>A</h1>b"),
		[]byte("<meta charset=windows-1251><p>"+"\xcf\xf0\xe8\xe2\xe5\xf2"), []byte(strings.Repeat("<p>paragraph <b>with</b> 字 text</p>\n", 20_000)))
	for _, source := range sources {
		want, err := page.Read(page.Source{ContentType: "text/html", Body: source}, page.Options{Text: 10 << 20})
		require.NoError(t, err)
		var text bytes.Buffer
		got, err := page.Convert(iotest.HalfReader(bytes.NewReader(source)), &text)
		require.NoError(t, err)
		assert.Equal(t, want.Text, strings.TrimRight(text.String(), " \n\t"))
		assert.Equal(t, []any{want.Title, want.Headings, want.Language, want.Description}, []any{got.Title, got.Headings, got.Language, got.Description})
	}
}

// repeated reads a text again and again.
func repeated(text string, times int) io.Reader {
	readers := make([]io.Reader, times)
	for i := range readers {
		readers[i] = strings.NewReader(text)
	}
	return io.MultiReader(readers...)
}

type counter int

func (c *counter) Write(text []byte) (int, error) {
	*c += counter(len(text))
	return len(text), nil
}

func TestConvertHasNoLimitOfLength(t *testing.T) {
	var written counter
	_, err := page.Convert(repeated("<p>"+strings.Repeat("x", 1000)+"</p>", 20_000), &written)
	require.NoError(t, err)
	assert.EqualValues(t, 20_000*1002-2, written)
}

func TestConvertFails(t *testing.T) {
	var text bytes.Buffer
	_, err := page.Convert(io.MultiReader(strings.NewReader("<p>first</p><p title='"), repeated(strings.Repeat("x", 1<<20), 9), strings.NewReader("'>last")), &text)
	require.ErrorContains(t, err, "a tag or a text without tags of more than 8 MiB")
	assert.Equal(t, "first", text.String())

	broken := errors.New("broken")
	_, err = page.Convert(io.MultiReader(strings.NewReader("<p>first</p>"), iotest.ErrReader(broken)), &text)
	require.ErrorIs(t, err, broken)
	_, err = page.Convert(strings.NewReader("<p>first</p>"), failing{broken})
	require.ErrorIs(t, err, broken)
	_, err = page.Convert(repeated("<p>paragraph</p>", 100_000), failing{broken})
	require.ErrorIs(t, err, broken)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestDecode(t *testing.T) {
	for _, test := range []struct{ name, source, text, encoding string }{
		{"nothing", "", "", "utf-8"},
		{"UTF-8", "caf\u00e9 \u732b", "caf\u00e9 \u732b", "utf-8"},
		{"UTF-8 with a mark", "\ufeffa", "a", "utf-8"},
		{"damaged UTF-8", "\u00e4\u00f6\u00fc \xff \u00df", "\u00e4\u00f6\u00fc \xff \u00df", "utf-8"},
		{"western", "caf\xe9, na\xefve", "caf\u00e9, na\u00efve", "windows-1252"},
		{"Chinese", "a \xd6\xd0\xce\xc4\xa3\xac\xc4\xe3\xba\xc3\xa1\xa3", "a \u4e2d\u6587\uff0c\u4f60\u597d\u3002", "gb18030"},
		{"UTF-16, little", "\xff\xfea\x00\xe4\x00", "a\u00e4", "utf-16le"},
		{"UTF-16, big", "\xfe\xff\x00a\x00\xe4", "a\u00e4", "utf-16be"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, name, err := page.Decode(bufio.NewReader(strings.NewReader(test.source)), false)
			require.NoError(t, err)
			assert.Equal(t, test.encoding, name)
			decoded, err := io.ReadAll(text)
			require.NoError(t, err)
			assert.Equal(t, test.text, string(decoded))
		})
	}
}
