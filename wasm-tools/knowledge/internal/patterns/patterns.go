// Package patterns finds the lines of a text that have one of several words or match regular expressions.
//
// An automaton over bytes finds lines that may match, in time that grows only with the text, whatever the
// patterns are. Expressions of package regexp, which is more than ten times slower, then decide about those.
package patterns

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Options say how patterns are read.
type Options struct {
	// Regex means that patterns are regular expressions in the syntax of RE2, and not literal text.
	Regex bool
	// CaseSensitive means that case makes a difference.
	CaseSensitive bool
}

// Set is compiled patterns. It is not safe for concurrent use.
type Set struct {
	expressions []*regexp.Regexp
	candidates  *automaton // nil if it would be too large: then all lines are candidates
}

// Compile compiles patterns. A line matches that matches any of them.
func Compile(patterns []string, options Options) (*Set, error) {
	s := &Set{}
	var parsed []*syntax.Regexp
	flags := syntax.Perl
	if !options.CaseSensitive {
		flags |= syntax.FoldCase
	}
	for _, pattern := range patterns {
		if pattern == "" {
			return nil, errors.New("a pattern is empty; write what to look for")
		}
		text := pattern
		if !options.Regex {
			if bytes.ContainsAny([]byte(pattern), "\n\r") {
				return nil,
					fmt.Errorf("the pattern %q has a line break, but is looked for in single lines; write a pattern for each line",
						pattern)
			}
			text = regexp.QuoteMeta(pattern)
		}
		tree, err := syntax.Parse(text, flags)
		if err != nil {
			return nil, fmt.Errorf("the pattern %q is no regular expression: %w", pattern, err)
		}
		prefix := ""
		if !options.CaseSensitive {
			prefix = "(?i)"
		}
		expression, err := regexp.Compile(prefix + text)
		if err != nil {
			return nil, fmt.Errorf("the pattern %q is no regular expression: %w", pattern, err)
		}
		s.expressions = append(s.expressions, expression)
		parsed = append(parsed, tree)
	}
	s.candidates = newAutomaton(parsed)
	return s, nil
}

// Line is a line that matches.
type Line struct {
	Start, End   int // of the line in the text
	MatchStart   int // of the first match, in the text
	MatchEnd     int
	PatternIndex int // of the first pattern that matches there
}

// Find calls visit with each line that has a match. A match must start before limit, but may extend beyond it. Visit
// returns whether to continue.
func (s *Set) Find(text []byte, limit int, visit func(Line) bool) {
	for at := 0; at < limit; {
		end := at
		if s.candidates != nil {
			switch found := s.candidates.find(text, at); {
			case found < 0:
				return
			case s.candidates.isExhausted():
				s.candidates = nil
			default:
				end = max(found-1, at)
			}
		}
		start := at
		if before := bytes.LastIndexByte(text[at:end], '\n'); before >= 0 {
			start = at + before + 1
		}
		if length := bytes.IndexByte(text[end:], '\n'); length >= 0 {
			end += length
		} else {
			end = len(text)
		}
		at = end + 1
		line, ok := s.match(text, start, end)
		if ok && (line.MatchStart < limit || line.MatchStart == len(text)) && !visit(line) {
			return
		}
	}
}

// match decides about a line.
func (s *Set) match(text []byte, start, end int) (found Line, ok bool) {
	line := bytes.TrimSuffix(text[start:end], []byte("\r"))
	for i, expression := range s.expressions {
		if place := expression.FindIndex(line); place != nil && (!ok || start+place[0] < found.MatchStart) {
			found, ok = Line{start, start + len(line), start + place[0], start + place[1], i}, true
		}
	}
	return found, ok
}
