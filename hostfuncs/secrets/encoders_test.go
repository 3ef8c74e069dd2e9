package secrets_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
)

// encoder writes a text in another form. Some encode other text around it along with it.
type encoder struct {
	name   string
	encode func(text string) string
}

func encoders() []encoder {
	list := []encoder{
		{"plain", func(s string) string { return s }},
		{"query", url.QueryEscape},
		{"path", url.PathEscape},
		{"percent, every byte", func(s string) string { return everyByte(s, "%%%02X") }},
		{"percent, lower case", func(s string) string { return everyByte(s, "%%%02x") }},
		{"percent, every other byte", func(s string) string { return everyOther(s, "%%%02x") }},
		{"JSON", jsonText},
		{"JSON without HTML", func(s string) string {
			return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(jsonText(s))
		}},
		{"JSON with escaped slashes", func(s string) string { return strings.ReplaceAll(jsonText(s), "/", `\/`) }},
		{"JSON, every byte", func(s string) string { return everyByte(s, `\u%04x`) }},
		{"JSON, upper case", func(s string) string { return everyOther(s, `\u%04X`) }},
		{"script", func(s string) string { return everyByte(s, `\x%02x`) }},
		{"HTML", html.EscapeString},
		{"HTML, decimal", func(s string) string { return everyByte(s, "&#%d;") }},
		{"HTML, hexadecimal", func(s string) string { return everyOther(s, "&#x%X;") }},
		{"HTML, padded", func(s string) string { return everyByte(s, "&#x%06x;") }},
		{"HTML, by name", func(s string) string {
			return strings.NewReplacer("/", "&sol;", "+", "&plus;", "%", "&percnt;", `\`, "&bsol;").Replace(html.EscapeString(s))
		}},
		{"hexadecimal", func(s string) string { return hex.EncodeToString([]byte(s)) }},
		{"hexadecimal, upper case", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
		{"hexadecimal, mixed case", func(s string) string { return mixedCase(hex.EncodeToString([]byte(s))) }},
	}
	list = append(list,
		encoder{"lower case", strings.ToLower}, encoder{"upper case", strings.ToUpper},
		encoder{"UTF-16, the low byte first", func(s string) string { return everyByte(s, "%c\x00") }},
		encoder{"UTF-16, the high byte first", func(s string) string { return everyByte(s, "\x00%c") }},
		encoder{"UTF-32", func(s string) string { return everyByte(s, "%c\x00\x00\x00") }},
		encoder{"JSON in UTF-16", func(s string) string { return everyByte(jsonText(s), "%c\x00") }},
		encoder{"hexadecimal in UTF-16", func(s string) string { return everyByte(hex.EncodeToString([]byte(s)), "%c\x00") }},
	)
	for behind := range 6 {
		before := "ABCDEFG"[:behind]
		add := func(name string, encode func([]byte) string) {
			list = append(list, encoder{fmt.Sprintf("%s behind %d bytes", name, behind), func(s string) string {
				return encode([]byte(before + s + "tail"))
			}}, encoder{fmt.Sprintf("%s behind %d bytes, at the end", name, behind), func(s string) string {
				return encode([]byte(before + s))
			}})
		}
		add("Base64", base64.StdEncoding.EncodeToString)
		add("Base64 without padding", base64.RawStdEncoding.EncodeToString)
		add("Base64 for URLs", base64.URLEncoding.EncodeToString)
		add("Base64 for URLs without padding", base64.RawURLEncoding.EncodeToString)
		add("Base64 in lines", func(b []byte) string { return inLines(base64.StdEncoding.EncodeToString(b), "\r\n") })
		add("Base64 in lines in JSON", func(b []byte) string { return inLines(base64.StdEncoding.EncodeToString(b), `\n`) })
		add("Base64 in JSON", func(b []byte) string {
			return strings.ReplaceAll(base64.StdEncoding.EncodeToString(b), "/", `\/`)
		})
		add("Base64 in a query", func(b []byte) string { return url.QueryEscape(base64.StdEncoding.EncodeToString(b)) })
		add("Base32", base32.StdEncoding.EncodeToString)
		add("Base32 in lower case", func(b []byte) string { return strings.ToLower(base32.StdEncoding.EncodeToString(b)) })
	}
	for _, nested := range [][]string{
		{"query", "query"}, {"query", "JSON"}, {"JSON", "query"}, {"JSON", "JSON"}, {"JSON with escaped slashes", "JSON"},
		{"HTML", "JSON"}, {"JSON", "HTML"}, {"HTML", "query"}, {"path", "JSON with escaped slashes"}, {"HTML", "HTML"},
		{"JSON", "JSON", "JSON"}, {"query", "JSON", "HTML"}, {"JSON", "query", "query"}, {"HTML, decimal", "JSON", "query"},
	} {
		list = append(list, encoder{strings.Join(nested, " in "), func(s string) string {
			for _, name := range nested {
				s = encoderNamed(list, name).encode(s)
			}
			return s
		}})
	}
	return list
}

func encoderNamed(list []encoder, name string) encoder {
	for _, e := range list {
		if e.name == name {
			return e
		}
	}
	panic("no encoder is named " + name)
}

func jsonText(s string) string {
	encoded, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(encoded[1 : len(encoded)-1])
}

func everyByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// everyOther writes every other byte as it is where that is a letter or a digit.
func everyOther(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		if i%2 == 0 && (s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'z') {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, format, s[i])
		}
	}
	return b.String()
}

func mixedCase(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); i += 2 {
		b[i] = strings.ToUpper(s)[i]
	}
	return string(b)
}

func inLines(s, lineBreak string) string {
	var b strings.Builder
	for len(s) > 7 {
		b.WriteString(s[:7] + lineBreak)
		s = s[7:]
	}
	return b.String() + s
}
