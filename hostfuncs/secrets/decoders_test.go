package secrets_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// The forms, as the standard library's decoders read them. They know nothing of the package.
var (
	percentForm = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	jsonForm    = regexp.MustCompile(`\\u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\["\\/bfnrt]`)
	base64Run   = regexp.MustCompile(`[A-Za-z0-9+/_-](?:[ \t\r\n]{0,32}[A-Za-z0-9+/_-]){19,}`)
	hexRun      = regexp.MustCompile(`[0-9A-Fa-f](?:[ \t\r\n:-]{0,32}[0-9A-Fa-f]){31,}`)
	standard    = strings.NewReplacer("-", "+", "_", "/", " ", "", "\t", "", "\r", "", "\n", "")
	unseparated = strings.NewReplacer("-", "", ":", "", " ", "", "\t", "", "\r", "", "\n", "")
)

// decodesTo reports whether someone who knows the forms finds a value in a text that is written
// in one of them.
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
