package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// pattern selects entries of a listing: by their names, or with a slash by their paths below the directory.
type pattern []string // its parts between slashes

const maxPattern = 1000 // characters

// everyDirectory is a part that matches any number of directories.
const everyDirectory = "**"

func patternOf(text string) (pattern, error) {
	if text == "" {
		text = "*"
	}
	p := pattern(strings.Split(path.Clean(text), "/"))
	for i, part := range p {
		p[i] = forMatch(part)
		if _, err := path.Match(p[i], ""); err != nil || part == "" || part == ".." {
			return nil,
				fmt.Errorf("the pattern %q selects nothing below the directory; write one such as *.txt, [a-z]* or docs/**/*.md",
					plain.Line(text, maxPattern))
		}
	}
	return p, nil
}

// forMatch returns a part as [path.Match] takes it: [^a] is what shells also write as [!a].
func forMatch(part string) string {
	b, inClass := []byte(part), false
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\':
			i++ // the next byte is literal
		case inClass:
			inClass = b[i] != ']'
		case b[i] == '[':
			inClass = true
			if i+1 < len(b) && b[i+1] == '!' {
				b[i+1] = '^'
			}
		}
	}
	return string(b)
}

// isDeep reports whether the pattern selects entries of subdirectories, too.
func (p pattern) isDeep() bool { return len(p) > 1 || p[0] == everyDirectory }

// matches reports whether the pattern selects a path below the directory.
func (p pattern) matches(name string) bool {
	if len(p) == 1 && p[0] != everyDirectory {
		return matchesPart(p[0], path.Base(name))
	}
	return p.matchesParts(strings.Split(name, "/"))
}

func (p pattern) matchesParts(parts []string) bool {
	// reached[i] says whether the first i parts of the pattern match the parts so far.
	reached := make([]bool, len(p)+1)
	reached[0] = true
	for i := 0; i < len(p) && p[i] == everyDirectory; i++ {
		reached[i+1] = true
	}
	for _, part := range parts {
		next := make([]bool, len(p)+1)
		for i, want := range p {
			next[i+1] = reached[i] && want != everyDirectory && matchesPart(want, part) ||
				want == everyDirectory && (next[i] || reached[i+1])
		}
		reached = next
	}
	return reached[len(p)]
}

func matchesPart(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return matched && err == nil
}
