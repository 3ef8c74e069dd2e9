package manifests

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// toolName is what every vendor of language models accepts as the name of a tool.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// How names are written, for people.
const (
	nameFix    = "use 1 to 64 letters, digits, _ and - of ASCII"
	settingFix = "use letters, digits and _, starting with a letter or _"
)

// parameterName is what can be a context parameter.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// settingName is what can name an environment variable, a secret or a setting.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// secretName is settingName as secrets are written.
var secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,127}$`)

// versionText is a semantic version (semver.org, 2.0.0) without leading v.
var versionText = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z.-]{1,40})?(\+[0-9A-Za-z.-]{1,40})?$`)

// word reads text that matches a pattern.
func (r *reader) word(n *node, path string, pattern *regexp.Regexp, fix string) string {
	text := r.text(n, path)
	if n.kind == textNode && !pattern.MatchString(text) {
		r.add(n.at, path, InvalidValue, fmt.Sprintf("%q is not allowed here", clip(text)), fix)
		return ""
	}
	return text
}

func (r *reader) name(n *node, path string) string {
	return r.word(n, path, toolName, nameFix)
}

func (r *reader) version(n *node, path string) string {
	return r.word(n, path, versionText, "write a semantic version in quotes if need be, such as 1.0.0")
}

// line reads a non-empty line of visible text of at most the given characters.
func (r *reader) line(n *node, path string, most int) string {
	text := r.prose(n, path, most*utf8.UTFMax)
	fix := fmt.Sprintf("write one line of 1 to %d characters", most)
	switch {
	case text == "":
	case strings.ContainsAny(text, "\n\t"):
		r.add(n.at, path, InvalidValue, "line breaks and tabs are not allowed here", fix)
	case utf8.RuneCountInString(text) > most:
		r.add(n.at, path, OutOfRange, fmt.Sprintf("%d characters are over the limit of %d", utf8.RuneCountInString(text), most), fix)
	default:
		return text
	}
	return ""
}

// value reads a text whose white space counts, of at most the given bytes.
func (r *reader) value(n *node, path string, most int) string {
	text := r.text(n, path)
	switch {
	case n.kind != textNode:
		return ""
	case len(text) > most:
		r.add(n.at, path, OutOfRange, fmt.Sprintf("%d bytes are over the limit of %d", len(text), most), "make the text shorter")
		return ""
	case !r.visible(n.at, path, text):
		return ""
	}
	return text
}

// prose reads non-empty visible text of at most the given bytes, without the white
// space around it.
func (r *reader) prose(n *node, path string, most int) string {
	text := strings.TrimSpace(r.text(n, path))
	switch {
	case n.kind != textNode:
		return ""
	case text == "":
		r.add(n.at, path, InvalidValue, "the text is empty", "write something or remove the key")
		return ""
	case len(text) > most:
		r.add(n.at, path, OutOfRange, fmt.Sprintf("%d bytes are over the limit of %d", len(text), most), "make the text shorter")
		return ""
	}
	if !r.visible(n.at, path, text) {
		return ""
	}
	return text
}

// visible reports text that holds what a reviewer does not see and a model does.
func (r *reader) visible(at position, path, text string) bool {
	if c, hidden := hiddenRune(text); hidden {
		r.add(at, path, InvalidValue, fmt.Sprintf("the text holds the invisible or directional character U+%04X", c), "remove it")
		return false
	}
	return true
}

// hiddenRune returns the first character that does not show or reorders what shows:
// controls other than line break and tab, directional marks, tag characters and the
// like (Unicode Technical Report 36, section 3). Emoji and Indic or Persian text need
// single joiners and variation selectors, so these are allowed.
func hiddenRune(text string) (rune, bool) {
	var previous rune
	for _, c := range text {
		switch {
		case c == '\n' || c == '\t':
		case c == '\u200c' || c == '\u200d':
			if previous == '\u200c' || previous == '\u200d' {
				return c, true
			}
		case unicode.In(c, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp),
			c == '\u115f', c == '\u1160', c == '\u3164', c == '\uffa0', c == '\u2800', c == '\u034f',
			0xfe00 <= c && c <= 0xfe0d, 0xe0000 <= c && c <= 0xe0fff:
			return c, true
		}
		previous = c
	}
	return 0, false
}

// clip shortens text for a message.
func clip(text string) string {
	if runes := []rune(text); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return text
}

// nearest returns the word that a misspelt one was probably meant to be, or "".
func nearest(word string, words []string) string {
	best, least := "", 3
	for _, candidate := range words {
		if strings.EqualFold(word, candidate) {
			return candidate
		}
		if d := distance(word, candidate); d < least && d*2 < len(candidate) {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the characters to add, remove, replace or swap with their neighbours
// to make a of b (optimal string alignment). Long words are far from everything.
func distance(a, b string) int {
	const far = 1 << 10
	if len(a) > 64 || len(b) > 64 {
		return far
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// FoldName returns what the name of a header or a parameter becomes in servers that make variables
// of names, as CGI, WSGI and PHP do, or that ignore case: letters in lower case, and "-" for each
// character that is neither an ASCII letter nor a digit. To one of these servers, names that are
// equal then are the same.
func FoldName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r | 0x20
		default:
			return '-'
		}
	}, name)
}
