package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

const (
	defaultPassages = 3
	maxFile         = 1 << 20 // bytes
)

// found is the data of a result, in the form in which streams show what a search of files has found.
type found struct {
	Results []passage `json:"results"`
	// Skipped are the files that could not be searched, and why.
	Skipped []string `json:"skipped"`
}

// passage is a paragraph of a file.
type passage struct {
	FileID string  `json:"file_id"`  // the path at which the host put the file
	File   string  `json:"filename"` // the name that the user knows
	Line   int     `json:"line"`     // of its start, from 1
	Score  float64 `json:"score"`    // above 0, and below 1
	Text   string  `json:"text"`

	lines []string
	words map[string]int
}

// find returns the passages that best match the query, best first.
func (h host) find(a arguments) (found, error) {
	call, err := h.context()
	if err != nil {
		return found{}, err
	}
	if len(call.Files) == 0 {
		return found{}, errors.New("the user has provided no files that this tool can open")
	}
	wanted := slices.Compact(slices.Sorted(slices.Values(words(a.Query))))
	if len(wanted) == 0 {
		return found{}, errors.New("the query has no words")
	}
	f := found{Results: []passage{}, Skipped: []string{}}
	var all []passage
	for i, file := range call.Files {
		// Progress is not essential, so ignore errors.
		_ = h.progress(float64(i)/float64(len(call.Files)), "reading "+file.Name)
		text, err := h.read(file.Path)
		if err != nil {
			f.Skipped = append(f.Skipped, file.Name+": "+err.Error())
			continue
		}
		all = append(all, paragraphs(file, text)...)
	}
	if a.Passages == 0 {
		a.Passages = defaultPassages
	}
	f.Results = append(f.Results, best(all, wanted, a.Passages)...)
	return f, nil
}

func (h host) read(path string) (string, error) {
	file, err := h.open(path)
	if err != nil {
		return "", errors.New("it cannot be opened")
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return "", errors.New("it cannot be read")
	case len(content) > maxFile:
		return "", fmt.Errorf("it has more than %d bytes", maxFile)
	case !utf8.Valid(content):
		return "", errors.New("it is not UTF-8 text")
	}
	return string(content), nil
}

// paragraphs splits a text at blank lines.
func paragraphs(file caisson.File, text string) []passage {
	var list []passage
	number, inside := 0, false
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line != "" && !inside {
			list = append(list, passage{FileID: file.Path, File: file.Name, Line: number, words: map[string]int{}})
		}
		if inside = line != ""; inside {
			p := &list[len(list)-1]
			p.lines = append(p.lines, line)
		}
	}
	for i := range list {
		list[i].Text = strings.Join(list[i].lines, "\n")
		for _, word := range words(list[i].Text) {
			list[i].words[word]++
		}
	}
	return list
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// best returns the passages that match most of the words. Rare words count more. A score is relative to that of a
// passage that is full of every word.
func best(all []passage, wanted []string, limit int) []passage {
	whole := 0.0
	for _, word := range wanted {
		holders := 0
		for _, p := range all {
			holders += min(p.words[word], 1)
		}
		weight := float64(len(all)+1) / float64(max(holders, 1))
		whole += weight
		for i := range all {
			often := float64(all[i].words[word])
			all[i].Score += weight * often / (often + 1)
		}
	}
	for i := range all {
		all[i].Score /= whole
	}
	list := slices.DeleteFunc(all, func(p passage) bool { return p.Score == 0 })
	slices.SortStableFunc(list, func(a, b passage) int { return cmp.Compare(b.Score, a.Score) })
	return list[:min(limit, len(list))]
}

// text returns the passages for people. It may be shown to them unchanged.
func (f found) text() string {
	var b strings.Builder
	for _, p := range f.Results {
		fmt.Fprintf(&b, "%s, line %d:\n%s\n\n", p.File, p.Line, p.Text)
	}
	if len(f.Results) == 0 {
		b.WriteString("No file mentions this.\n\n")
	}
	for _, skipped := range f.Skipped {
		fmt.Fprintf(&b, "Not searched: %s\n", skipped)
	}
	return strings.TrimSpace(b.String())
}
