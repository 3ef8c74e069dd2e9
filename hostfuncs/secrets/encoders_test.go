package secrets_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf16"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
)

// encoder writes a text in another form. Some encode other text around it along with it.
type encoder struct {
	name   string
	encode func(text string) string
}

// encoders are all forms that are promised to be found, in their variants.
func encoders() []encoder {
	list := []encoder{{"plain", func(s string) string { return s }}}
	list = append(list, percentEncoders()...)
	list = append(list, jsonEncoders()...)
	list = append(list, hexEncoders()...)
	return append(list, base64Encoders()...)
}

func percentEncoders() []encoder {
	return []encoder{
		{"percent, path", url.PathEscape},
		{"percent, query", func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }},
		{"percent, every byte", func(s string) string { return percentOf(s, 1, "%%%02X") }},
		{"percent, lower case", func(s string) string { return percentOf(s, 1, "%%%02x") }},
		{"percent, every other byte", func(s string) string { return percentOf(s, 2, "%%%02x") }},
		{"percent, every fifth byte", func(s string) string { return percentOf(s, 5, "%%%02X") }},
	}
}

func jsonEncoders() []encoder {
	return []encoder{
		{"JSON", jsonText},
		{"JSON without HTML", func(s string) string {
			var b strings.Builder
			encoder := json.NewEncoder(&b)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(s); err != nil {
				panic(err)
			}
			return strings.Trim(b.String(), "\"\n")
		}},
		{"JSON with escaped slashes", func(s string) string { return strings.ReplaceAll(jsonText(s), "/", `\/`) }},
		{"JSON, every character", func(s string) string { return unicodeOf(s, 1, `\u%04x`) }},
		{"JSON, upper case", func(s string) string { return unicodeOf(s, 1, `\u%04X`) }},
		{"JSON, every other character", func(s string) string { return unicodeOf(s, 2, `\u%04x`) }},
		{"JSON, every fifth character", func(s string) string { return unicodeOf(s, 5, `\u%04X`) }},
	}
}

func hexEncoders() []encoder {
	of := func(s string) string { return hex.EncodeToString([]byte(s)) }
	list := []encoder{
		{"hexadecimal", of},
		{"hexadecimal, upper case", func(s string) string { return strings.ToUpper(of(s)) }},
		{"hexadecimal, mixed case", func(s string) string { return mixedCase(of(s)) }},
		{"hexadecimal in a longer one", func(s string) string { return of("\x00\xffabc" + s + "xyz") }},
		{"hexadecimal, after openssl", func(s string) string { return inLines(inLines(of(s), 2, ":"), 45, "\n"+strings.Repeat(" ", 20)) }},
		{"hexadecimal, each digit as far away as can be", func(s string) string {
			return inLines(of(s), 1, strings.Repeat(" ", secrets.MaxBetween))
		}},
	}
	for _, between := range []string{":", "-", " ", "\t", "\n", "\r\n", " - "} {
		list = append(list, encoder{fmt.Sprintf("hexadecimal with %q", between), func(s string) string { return inLines(strings.ToUpper(of(s)), 2, between) }})
	}
	return list
}

func base64Encoders() []encoder {
	var list []encoder
	for before := range 6 {
		around := "ABCDEFG"[:before]
		add := func(name string, encode func([]byte) string) {
			list = append(list, encoder{fmt.Sprintf("%s behind %d bytes", name, before), func(s string) string {
				return encode([]byte(around + s + "tail"))
			}}, encoder{fmt.Sprintf("%s behind %d bytes, at the end", name, before), func(s string) string {
				return encode([]byte(around + s))
			}})
		}
		add("Base64", base64.StdEncoding.EncodeToString)
		add("Base64 without padding", base64.RawStdEncoding.EncodeToString)
		add("Base64 for URLs", base64.URLEncoding.EncodeToString)
		add("Base64 for URLs without padding", base64.RawURLEncoding.EncodeToString)
		for _, lineBreak := range []string{"\n", "\r\n", "\n    ", "\r\n\t\t", "\n" + strings.Repeat(" ", secrets.MaxBetween-1)} {
			add(fmt.Sprintf("Base64 in lines that end with %q", lineBreak), func(b []byte) string { return inLines(base64.StdEncoding.EncodeToString(b), 7, lineBreak) })
		}
	}
	return list
}

func jsonText(s string) string {
	encoded, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(encoded[1 : len(encoded)-1])
}

// percentOf escapes each byte whose index is a multiple of every, and all bytes except letters and digits.
func percentOf(s string, every int, format string) string {
	var b strings.Builder
	for i := range len(s) {
		if i%every != 0 && isPlain(rune(s[i])) {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, format, s[i])
		}
	}
	return b.String()
}

// unicodeOf escapes each character whose index is a multiple of every, and all except letters and digits.
func unicodeOf(s string, every int, format string) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		if i%every != 0 && isPlain(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, format, unit)
		}
	}
	return b.String()
}

func isPlain(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func mixedCase(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); i += 2 {
		b[i] = strings.ToUpper(s)[i]
	}
	return string(b)
}

func inLines(s string, length int, lineBreak string) string {
	var b strings.Builder
	for len(s) > length {
		b.WriteString(s[:length] + lineBreak)
		s = s[length:]
	}
	return b.String() + s
}

// The forms, as the standard library's decoders read them. They know nothing of the package.
var (
	percentForm = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	jsonForm    = regexp.MustCompile(`\\u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\["\\/bfnrt]`)
	base64Run   = regexp.MustCompile(`[A-Za-z0-9+/_-](?:[ \t\r\n]{0,32}[A-Za-z0-9+/_-]){19,}`)
	hexRun      = regexp.MustCompile(`[0-9A-Fa-f](?:[ \t\r\n:-]{0,32}[0-9A-Fa-f]){31,}`)
	standard    = strings.NewReplacer("-", "+", "_", "/", " ", "", "\t", "", "\r", "", "\n", "")
	unseparated = strings.NewReplacer("-", "", ":", "", " ", "", "\t", "", "\r", "", "\n", "")
)

// decodesTo reports whether someone who knows the forms finds a value in a text that is written in one of them.
func decodesTo(text, value string) bool {
	for _, decoded := range []string{text, unescapePercent(text), unescapeJSON(text)} {
		if strings.Contains(decoded, value) {
			return true
		}
	}
	return inBase64(text, value) || inHexadecimal(text, value)
}

func unescapePercent(s string) string {
	return percentForm.ReplaceAllStringFunc(s, func(form string) string {
		text, err := url.PathUnescape(form)
		if err != nil {
			panic(err)
		}
		return text
	})
}

func unescapeJSON(s string) string {
	return jsonForm.ReplaceAllStringFunc(s, func(form string) string {
		var text string
		if err := json.Unmarshal([]byte(`"`+form+`"`), &text); err != nil {
			panic(err)
		}
		return text
	})
}

func inBase64(text, value string) bool {
	for _, run := range base64Run.FindAllString(text, -1) {
		run = standard.Replace(run)
		for skip := range 4 {
			whole := run[skip:]
			for len(whole)%4 == 1 { // what no encoder writes is part of the next text
				whole = whole[:len(whole)-1]
			}
			if decoded, err := base64.RawStdEncoding.DecodeString(whole); err == nil && strings.Contains(string(decoded), value) {
				return true
			}
		}
	}
	return false
}

func inHexadecimal(text, value string) bool {
	for _, run := range hexRun.FindAllString(text, -1) {
		run = unseparated.Replace(run)
		for skip := range 2 {
			if decoded, _ := hex.DecodeString(run[skip:]); strings.Contains(string(decoded), value) {
				return true
			}
		}
	}
	return false
}
