package manifests

import (
	"slices"
	"strings"
	"unicode"
)

func textOf(text string) *node { return &node{kind: textNode, text: text} }

func listOf(elements ...*node) *node { return &node{kind: listNode, elements: elements} }

// objectOf returns an object of the members that have a value.
func objectOf(members ...member) *node {
	return &node{kind: objectNode, members: slices.DeleteFunc(members, func(m member) bool { return m.value == nil })}
}

func keyed(key string, value *node) member { return member{key: key, value: value} }

// flow returns a value as one line of YAML. It reports false if the value holds text that
// is not plain: people paste the line, and must see what it says.
func (n *node) flow() (string, bool) {
	var b strings.Builder
	plain := n.writeFlow(&b)
	return b.String(), plain
}

func (n *node) writeFlow(b *strings.Builder) bool {
	plain := true
	switch n.kind {
	case listNode:
		b.WriteByte('[')
		for i, element := range n.elements {
			if i > 0 {
				b.WriteString(", ")
			}
			plain = element.writeFlow(b) && plain
		}
		b.WriteByte(']')
	case objectNode:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteString(", ")
			}
			plain = textOf(m.key).writeFlow(b) && plain
			b.WriteString(": ")
			plain = m.value.writeFlow(b) && plain
		}
		b.WriteByte('}')
	case textNode:
		text := n.text
		if needsQuotes(text) {
			text = `"` + text + `"`
		}
		b.WriteString(text)
		return isPlain(n.text)
	default:
		b.WriteString(n.text)
	}
	return plain
}

// isPlain reports whether a text holds nothing but letters, digits, and the marks of names,
// paths, hosts and headers, none of which means anything between double quotes.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("/._-+@, *:~=", c)
	})
}

// yamlWords are texts that some reader of YAML takes for something else.
var yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// needsQuotes reports whether a text might not be read as itself without quotes.
func needsQuotes(text string) bool {
	if text == "" || slices.Contains(yamlWords, strings.ToLower(text)) {
		return true
	}
	if first := text[0]; first != '/' && (first < 'a' || first > 'z') && (first < 'A' || first > 'Z') {
		return true
	}
	return strings.ContainsFunc(text, func(c rune) bool {
		ascii := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !ascii && !strings.ContainsRune("/._-", c)
	})
}
