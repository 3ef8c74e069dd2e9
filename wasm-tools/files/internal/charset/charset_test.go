package charset_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/files/internal/charset"
)

func TestEncodings(t *testing.T) {
	for _, test := range []struct{ name, text, stored string }{
		{"", "ä\n", "ä\n"},
		{"UTF-8", "ä", "ä"},
		{"utf_8", "ä", "ä"},
		{"utf-8-sig", "ä", "\xef\xbb\xbfä"},
		{"utf-16", "a€", "\xff\xfea\x00\xac\x20"},
		{"utf-16le", "a", "a\x00"},
		{"utf-16be", "😀", "\xd8\x3d\xde\x00"},
		{"ascii", "a~", "a~"},
		{"latin-1", "ä\u0085", "\xe4\x85"},
		{"ISO-8859-1", "ä", "\xe4"},
		{"windows-1252", "€", "\x80"},
		{"cp1252", "€", "\x80"},
		{"gbk", "中文", "\xd6\xd0\xce\xc4"},
		{"gb18030", "中😀", "\xd6\xd0\x94\x39\xfc\x36"},
		{"big5", "中", "\xa4\xa4"},
		{"shift_jis", "中", "\x92\x86"},
		{"euc-kr", "한", "\xc7\xd1"},
		{"koi8-r", "ж", "\xd6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stored, err := charset.Of(test.name, "")
			require.NoError(t, err)
			encoded, err := stored.Encode(test.text)
			require.NoError(t, err)
			assert.Equal(t, test.stored, stored.Mark+encoded)
			text, used, err := stored.Decode([]byte(encoded), true)
			require.NoError(t, err)
			assert.Equal(t, test.text, text)
			assert.Equal(t, len(encoded), used)
		})
	}
	big, err := charset.Of("utf-16", "\xfe\xff\x00")
	require.NoError(t, err)
	text, _, err := big.Decode([]byte("\x00a"), true)
	require.NoError(t, err)
	assert.Equal(t, "a", text, "the file says so")

	for name, message := range map[string]string{"rot13": `the encoding "rot13" is not supported`, "iso-2022-jp": "is not supported", "csISO2022JP": "is not supported", "hz-gb-2312": "is not supported"} {
		_, err := charset.Of(name, "")
		require.ErrorContains(t, err, message)
	}
	for name, text := range map[string]string{"ascii": "abc ä", "latin-1": "5 €", "gbk": "한", "windows-1252": "中"} {
		stored, err := charset.Of(name, "")
		require.NoError(t, err)
		_, err = stored.Encode(text)
		require.ErrorContains(t, err, name+" has no '")
	}
	for name, bytes := range map[string]string{"": "\xff", "utf-8-sig": "\xff", "ascii": "\x80", "gbk": "\xff\xff", "utf-16le": "\x00\xd8", "utf-16be": "a", "shift_jis": "\x92"} {
		stored, err := charset.Of(name, "")
		require.NoError(t, err)
		_, _, err = stored.Decode([]byte(bytes), true)
		require.ErrorIs(t, err, charset.ErrNotText, "%s %q", name, bytes)
	}
}

// TestPiecesAreWholeCharacters: the pieces of a file, wherever they are cut, are its text.
func TestPiecesAreWholeCharacters(t *testing.T) {
	text := strings.Repeat("中a", 20)
	for _, name := range []string{"utf-8", "utf-16le", "gbk", "gb18030", "big5", "shift_jis"} {
		stored, err := charset.Of(name, "")
		require.NoError(t, err)
		encoded, err := stored.Encode(text)
		require.NoError(t, err)
		for size := 4; size < len(encoded); size++ {
			var read strings.Builder
			for rest := []byte(encoded); len(rest) > 0; {
				n := min(size, len(rest))
				piece, used, err := stored.Decode(rest[:n], n == len(rest))
				require.NoError(t, err)
				require.Positive(t, used)
				read.WriteString(piece)
				rest = rest[used:]
			}
			require.Equal(t, text, read.String(), "%s by %d", name, size)
		}
	}
}
