package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// clean removes invisible characters, makes line feeds of line breaks, and composes accents with their letters (NFC).
func clean(text string) string { return norm.NFC.String(plain.Lines(text)) }

// latin spells letters that have no accents to remove.
var latin = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "đ", "d", "ð", "d", "þ", "th", "ł", "l", "ħ",
	"h", "ı", "i", "ŋ", "ng")

// slug makes a name for an address of a text: letters and digits in lower case, with hyphens between words. Latin
// letters lose their accents, and other scripts stay.
func slug(text string) string {
	var made strings.Builder
	isPending, dropsMarks := false, true // marks are dropped except in scripts that spell with them
	for _, r := range norm.NFKD.String(latin.Replace(cases.Lower(language.Und).String(text))) {
		switch {
		case unicode.Is(unicode.M, r):
			if !dropsMarks {
				made.WriteRune(r)
			}
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			if isPending && made.Len() > 0 {
				made.WriteByte('-')
			}
			made.WriteRune(r)
			isPending, dropsMarks = false, !unicode.IsLetter(r) || unicode.Is(unicode.Latin, r)
		case r == '\'' || r == '’':
		default:
			isPending, dropsMarks = true, true
		}
	}
	return norm.NFC.String(made.String())
}

func base64Encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// base64Decode reads either alphabet, with padding or without, and ignores white space.
func base64Decode(text string) (string, error) {
	compact := strings.Join(strings.Fields(text), "")
	compact = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(compact, "="))
	decoded, err := base64.RawStdEncoding.DecodeString(compact)
	if at, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return "", fmt.Errorf("text is no Base64: it is wrong at character %d, white space not counted", int64(at)+1)
	}
	return decodedText(decoded, err)
}

// decodedText refuses bytes that are not text.
func decodedText(decoded []byte, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if !utf8.Valid(decoded) {
		return "", fmt.Errorf("text decodes to %d bytes that are no text in UTF-8", len(decoded))
	}
	return string(decoded), nil
}

// urlEncode writes all but letters of ASCII, digits and -._~ as %XX.
func urlEncode(text string) string {
	var made strings.Builder
	for _, c := range []byte(text) {
		if 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			made.WriteByte(c)
		} else {
			fmt.Fprintf(&made, "%%%02X", c)
		}
	}
	return made.String()
}

// urlDecode reads %XX. A plus is a plus.
func urlDecode(text string) (string, error) {
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			decoded = append(decoded, text[i])
			continue
		}
		if i+3 > len(text) {
			return "", fmt.Errorf("text is not URL-encoded: two hexadecimal digits have to follow the %% at byte %d", i+1)
		}
		c, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("text is not URL-encoded: two hexadecimal digits have to follow the %% at byte %d", i+1)
		}
		decoded = append(decoded, byte(c))
		i += 2
	}
	return decodedText(decoded, nil)
}
