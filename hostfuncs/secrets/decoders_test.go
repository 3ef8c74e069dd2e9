package secrets_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
)

var (
	percentForm   = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	backslashForm = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|["\\/nrt'])`)
	base64Run     = regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}`)
	base32Run     = regexp.MustCompile(`[A-Za-z2-7]{24,}`)
	hexRun        = regexp.MustCompile(`[0-9A-Fa-f]{32,}`)
	lineBreaks    = strings.NewReplacer("\r", "", "\n", "")
	standard      = strings.NewReplacer("-", "+", "_", "/")
)

// unescapers undo escapes, wherever they stand. They are written with the standard library
// and know nothing of the package.
func unescapers() []func(string) string {
	return []func(string) string{unescapePercent, func(s string) string { return unescapePercent(strings.ReplaceAll(s, "+", " ")) }, unescapeBackslash, html.UnescapeString}
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

func unescapeBackslash(s string) string {
	return backslashForm.ReplaceAllStringFunc(s, func(form string) string {
		switch {
		case form == `\'`:
			return "'"
		case form[1] == 'x':
			raw, err := hex.DecodeString(form[2:])
			if err != nil {
				panic(err)
			}
			return string(raw)
		}
		var text string
		if err := json.Unmarshal([]byte(`"`+form+`"`), &text); err != nil {
			panic(err)
		}
		return text
	})
}

// decodesTo reports whether someone who knows the encodings finds a value in a text: as it
// is, under one escape or two of one kind, or in an encoding in any of these.
func decodesTo(text, value string) bool {
	texts := []string{text}
	for _, unescape := range unescapers() {
		once := unescape(text)
		texts = append(texts, once, unescape(once))
	}
	for _, text := range texts {
		if strings.Contains(text, value) || encodedIn(text, value) || encodedIn(lineBreaks.Replace(text), value) {
			return true
		}
	}
	return false
}

func encodedIn(text, value string) bool {
	for _, run := range base64Run.FindAllString(text, -1) {
		for skip := range 4 {
			whole := standard.Replace(run[skip:])
			if decoded, err := base64.RawStdEncoding.DecodeString(whole[:len(whole)-len(whole)%4]); err == nil && strings.Contains(string(decoded), value) {
				return true
			}
			if decoded, _ := base64.RawStdEncoding.DecodeString(whole); strings.Contains(string(decoded), value) {
				return true
			}
		}
	}
	for _, run := range base32Run.FindAllString(text, -1) {
		for skip := range 8 {
			whole := strings.ToUpper(run[skip:])
			if decoded, _ := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(whole); strings.Contains(string(decoded), value) {
				return true
			}
		}
	}
	for _, run := range hexRun.FindAllString(text, -1) {
		for skip := range 2 {
			if decoded, _ := hex.DecodeString(run[skip:]); strings.Contains(string(decoded), value) {
				return true
			}
		}
	}
	return false
}
