package manifests

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/mistake"
)

// toolName matches the tool names that every vendor of language models accepts.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Fixes for invalid names.
const (
	nameFix    = "use 1 to 64 ASCII letters, digits, _ and -"
	settingFix = "use letters, digits and _, starting with a letter or _"
)

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// requiredDirectory matches guest paths that a manifest can require: those that need no quotes.
var requiredDirectory = regexp.MustCompile(`^(/[A-Za-z0-9_-][A-Za-z0-9_.-]*){1,16}$`)

// secretName is settingName in the form required for secrets.
var secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,127}$`)

// versionText matches a semantic version (semver.org, 2.0.0) without a leading v.
var versionText = regexp.MustCompile(
	`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z.-]{1,40})?(\+[0-9A-Za-z.-]{1,40})?$`)

func (r *reader) word(pattern *regexp.Regexp, fix string) parser[string] {
	return func(n *node, path string) string {
		text := r.text(n, path)
		n.note("pattern", textOf(pattern.String()))
		if n.kind == textNode && !pattern.MatchString(text) {
			r.invalid(n, path, fmt.Sprintf("%q is not allowed here", clip(text)), fix)
			return ""
		}
		return text
	}
}

func (r *reader) name(n *node, path string) string {
	n.note("title", textOf("name"))
	return r.word(toolName, nameFix)(n, path)
}

func (r *reader) version(n *node, path string) string {
	n.note("title", textOf("version"))
	return r.word(versionText, "write a semantic version in quotes if need be, such as 1.0.0")(n, path)
}

// line reads a non-empty line of visible text of at most limit characters.
func (r *reader) line(limit int) parser[string] {
	prose, fix := r.prose(limit*utf8.UTFMax), fmt.Sprintf("write one line of 1 to %d characters", limit)
	return func(n *node, path string) string {
		text := prose(n, path)
		if n.note("maxLength", intOf(limit)) {
			n.schema.take("$comment")
		}
		if strings.ContainsAny(text, "\n\t") {
			r.invalid(n, path, "line breaks and tabs are not allowed here", fix)
			return ""
		}
		if length := utf8.RuneCountInString(text); length > limit {
			r.outOfRange(n, path, fmt.Sprintf("%d characters are over the limit of %d", length, limit), fix)
			return ""
		}
		return text
	}
}

// prose reads non-empty visible text of at most limit bytes and trims surrounding white space.
func (r *reader) prose(limit int) parser[string] {
	return func(n *node, path string) string {
		text := strings.TrimSpace(r.text(n, path))
		n.note("minLength", intOf(1))
		if n.kind == textNode && text == "" {
			r.invalid(n, path, "the text is empty", "write something or remove the key")
		}
		return r.bounded(n, path, text, limit)
	}
}

// value reads a text of at most limit bytes, in which white space is significant.
func (r *reader) value(limit int) parser[string] {
	return func(n *node, path string) string { return r.bounded(n, path, r.text(n, path), limit) }
}

// bounded returns the text of a node, or "" if it is longer than limit bytes or not visible.
func (r *reader) bounded(n *node, path, text string, limit int) string {
	n.noteBytes(0, limit)
	if len(text) > limit {
		r.outOfRange(n, path, fmt.Sprintf("%d bytes are over the limit of %d", len(text), limit), "make the text shorter")
		return ""
	}
	if !r.visible(n.at, path, text) {
		return ""
	}
	return text
}

// visible reports text with characters that a model reads but a reviewer does not see.
func (r *reader) visible(at position, path, text string) bool {
	if c, hidden := hiddenRune(text); hidden {
		r.add(at, path, mistake.InvalidValue, fmt.Sprintf("the text holds the invisible or directional character U+%04X", c),
			"remove it")
		return false
	}
	return true
}

// hiddenRune returns the first character that is invisible or reorders visible ones: controls other than line break and
// tab, directional marks, tag characters and similar (Unicode Technical Report 36, section 3). It allows single joiners
// and variation selectors, which emoji and Indic or Persian text need.
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
