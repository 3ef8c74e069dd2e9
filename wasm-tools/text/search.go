package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

// maxMatches bounds how often a pattern may match.
const maxMatches = 200_000

// defaultFoundLimit is the default number of matches on a page.
const defaultFoundLimit = 100

// compile compiles what to look for: a text, or a regular expression in which ^ and $ match at each line.
func compile(pattern, name string, a arguments) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, errors.New(name + " is empty; write what to look for")
	}
	flags := "(?m)"
	if a.IgnoreCase != nil && *a.IgnoreCase {
		flags = "(?mi)"
	}
	if a.Regex == nil || !*a.Regex {
		return regexp.Compile(flags + regexp.QuoteMeta(pattern))
	}
	if _, err := regexp.Compile(pattern); err != nil { // in the words of its author
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return regexp.Compile(flags + pattern)
}

// all returns where a pattern matches, with its groups.
func all(pattern *regexp.Regexp, text string) ([][]int, error) {
	found := pattern.FindAllStringSubmatchIndex(text, maxMatches+1)
	if len(found) > maxMatches {
		return nil, fmt.Errorf("there are more than %d matches; work on parts of the text", maxMatches)
	}
	return found, nil
}

// match is one place at which a pattern matches.
type match struct {
	Text   string `json:"text"`
	Offset int    `json:"offset"` // in characters
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Groups are what the groups of a regular expression match, and null for those that match nothing.
	Groups []*string `json:"groups,omitempty"`
}

// find returns where a pattern matches.
func find(a arguments) (call.Result, error) {
	pattern, err := compile(*a.Pattern, "pattern", a)
	if err != nil {
		return call.Result{}, err
	}
	found, err := all(pattern, a.Text)
	if err != nil {
		return call.Result{}, err
	}
	if a.Limit == nil {
		limit := float64(defaultFoundLimit)
		a.Limit = &limit
	}
	start, end, data := a.page(len(found), func(i int) int { return 2*(found[i][1]-found[i][0]) + 64 })
	places := placesOf(a.Text)
	matches := []match{}
	var output strings.Builder
	fmt.Fprintf(&output, "%d matches", len(found))
	for _, at := range found[start:end] {
		m := match{Text: a.Text[at[0]:at[1]]}
		m.Offset, m.Line, m.Column = places(at[0])
		for group := 2; group < len(at); group += 2 {
			var said *string
			if at[group] >= 0 {
				matched := a.Text[at[group]:at[group+1]]
				said = &matched
			}
			m.Groups = append(m.Groups, said)
		}
		matches = append(matches, m)
		fmt.Fprintf(&output, "\nline %d, column %d: %s", m.Line, m.Column, m.Text)
	}
	data["matches"] = matches
	return call.Result{Success: true, Output: output.String() + more(data), Data: data}, nil
}

// placesOf returns a function that finds the character, from 0, and the line and column, from 1, at bytes of a text,
// which must not decrease.
func placesOf(text string) func(at int) (offset, line, column int) {
	each := graphemes.FromString(text)
	isMore := each.Next()
	passed, line, start := 0, 1, 0
	return func(at int) (int, int, int) {
		for ; isMore && each.End() <= at; isMore = each.Next() {
			passed++
			if v := each.Value(); v == "\n" || v == "\r\n" || v == "\r" {
				line, start = line+1, passed
			}
		}
		return passed, line, 1 + passed - start
	}
}

// split returns the parts of the text between separators.
func split(a arguments) (call.Result, error) {
	separator, err := compile(*a.Separator, "separator", a)
	if err != nil {
		return call.Result{}, err
	}
	found, err := all(separator, a.Text)
	if err != nil {
		return call.Result{}, err
	}
	parts, last := make([]string, 0, len(found)+1), 0
	for _, at := range found {
		if at[0] == at[1] && (at[0] == 0 || at[0] == len(a.Text)) {
			continue // an empty match at the start or the end separates nothing
		}
		parts = append(parts, a.Text[last:at[0]])
		last = at[1]
	}
	parts = append(parts, a.Text[last:])
	return list(func(string) []string { return parts }, "parts")(a)
}

// replace puts another text in the place of each match.
func replace(a arguments) (call.Result, error) {
	pattern, err := compile(*a.Pattern, "pattern", a)
	if err != nil {
		return call.Result{}, err
	}
	parts := []part{{text: *a.Replacement}}
	if a.Regex != nil && *a.Regex {
		if parts, err = templateOf(*a.Replacement, pattern); err != nil {
			return call.Result{}, fmt.Errorf("replacement: %w", err)
		}
	}
	found, err := all(pattern, a.Text)
	if err != nil {
		return call.Result{}, err
	}
	var made strings.Builder
	last := 0
	for _, at := range found {
		made.WriteString(a.Text[last:at[0]])
		for _, p := range parts {
			made.WriteString(p.text)
			if p.isGroup && at[2*p.group] >= 0 {
				made.WriteString(a.Text[at[2*p.group]:at[2*p.group+1]])
			}
		}
		if last = at[1]; made.Len() > maxText {
			return call.Result{}, errTooLong
		}
	}
	made.WriteString(a.Text[last:])
	result, err := text(made.String())
	if err == nil {
		result.Data.(map[string]any)["replaced"] = len(found)
	}
	return result, err
}

// part is a piece of a replacement: a text, or what a group matches.
type part struct {
	text    string
	isGroup bool
	group   int
}

// reference finds $1, ${1}, ${name}, \1, $$, $& and escapes.
var reference = regexp.MustCompile(`\$(\d{1,2}|\{\w+\}|[$&])|\\(\d{1,2}|.)`)

// templateOf reads the replacement of a regular expression.
func templateOf(replacement string, pattern *regexp.Regexp) ([]part, error) {
	var parts []part
	last := 0
	for _, at := range reference.FindAllStringSubmatchIndex(replacement, -1) {
		parts = append(parts, part{text: replacement[last:at[0]]})
		last = at[1]
		written := replacement[at[0]:at[1]]
		said := strings.Trim(written[1:], "{}")
		number, err := strconv.Atoi(said)
		switch index := pattern.SubexpIndex(said); {
		case said == "$" || said == `\`:
			parts = append(parts, part{text: said})
		case said == "n" && written[0] == '\\':
			parts = append(parts, part{text: "\n"})
		case said == "t" && written[0] == '\\':
			parts = append(parts, part{text: "\t"})
		case said == "&":
			parts = append(parts, part{isGroup: true})
		case err == nil && number <= pattern.NumSubexp():
			parts = append(parts, part{isGroup: true, group: number})
		case written[0] == '\\' && err != nil:
			return nil, fmt.Errorf(`%s is no escape; write \\ for a backslash`, written)
		case index > 0:
			parts = append(parts, part{isGroup: true, group: index})
		default:
			return nil,
				fmt.Errorf("the pattern has no group %s, it has %d; write $$ for a dollar sign", said, pattern.NumSubexp())
		}
	}
	return append(parts, part{text: replacement[last:]}), nil
}
