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
)

const (
	defaultPassages = 3
	maxFile         = 1 << 20 // bytes that are read of one
)

// found is the data of a result.
type found struct {
	Passages []passage `json:"passages"`
	// Skipped are files that could not be looked through, and why.
	Skipped []string `json:"skipped"`
}

// passage is a paragraph of a file.
type passage struct {
	File string `json:"file"` // as the user calls it
	Line int    `json:"line"` // where it begins, from 1
	Text string `json:"text"`

	words map[string]int
	score float64
}

// find returns the passages that are most about the query, the best first.
func (h host) find(a arguments) (found, error) {
	call, err := h.context()
	if err != nil {
		return found{}, err
	}
	if len(call.Files) == 0 {
		return found{}, errors.New("the user has handed over no files that this tool can open")
	}
	wanted := slices.Compact(slices.Sorted(slices.Values(words(a.Query))))
	if len(wanted) == 0 {
		return found{}, errors.New("the query has no words")
	}
	f := found{Passages: []passage{}, Skipped: []string{}}
	var all []passage
	for i, file := range call.Files {
		// Nobody may be watching, which is no reason to stop.
		_ = h.progress(float64(i)/float64(len(call.Files)), "reading "+file.Name)
		text, err := h.read(file.Path)
		if err != nil {
			f.Skipped = append(f.Skipped, file.Name+": "+err.Error())
			continue
		}
		all = append(all, paragraphs(file.Name, text)...)
	}
	if a.Passages == 0 {
		a.Passages = defaultPassages
	}
	f.Passages = append(f.Passages, best(all, wanted, a.Passages)...)
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
		return "", errors.New("it is no text in UTF-8")
	}
	return string(content), nil
}

// paragraphs splits a text where lines are blank.
func paragraphs(file, text string) []passage {
	var list []passage
	var lines []string
	first := 0
	end := func() {
		if len(lines) > 0 {
			whole := strings.Join(lines, "\n")
			p := passage{File: file, Line: first, Text: whole, words: map[string]int{}}
			for _, word := range words(whole) {
				p.words[word]++
			}
			list, lines = append(list, p), nil
		}
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			end()
			continue
		}
		if len(lines) == 0 {
			first = number
		}
		lines = append(lines, line)
	}
	end()
	return list
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// best returns the passages that hold most of the words, of which the rare ones count most.
func best(all []passage, wanted []string, most int) []passage {
	for _, word := range wanted {
		holders := 0
		for _, p := range all {
			holders += min(p.words[word], 1)
		}
		for i := range all {
			if often := float64(all[i].words[word]); often > 0 {
				all[i].score += float64(len(all)+1) / float64(holders) * often / (often + 1)
			}
		}
	}
	list := slices.DeleteFunc(all, func(p passage) bool { return p.score == 0 })
	slices.SortStableFunc(list, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	return list[:min(most, len(list))]
}

// text is the answer for people, who may get it as it is.
func (f found) text() string {
	var b strings.Builder
	for _, p := range f.Passages {
		fmt.Fprintf(&b, "%s, line %d:\n%s\n\n", p.File, p.Line, p.Text)
	}
	if len(f.Passages) == 0 {
		b.WriteString("None of the files says anything about it.\n\n")
	}
	for _, skipped := range f.Skipped {
		fmt.Fprintf(&b, "Not looked through: %s\n", skipped)
	}
	return strings.TrimSpace(b.String())
}
