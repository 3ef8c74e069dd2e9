package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/sentences"
	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

// length returns the number of characters.
func length(text string) int {
	count := 0
	for each := graphemes.FromString(text); each.Next(); {
		count++
	}
	return count
}

// wordsOf returns the words. Hyphens and apostrophes within a word are part of it. In Chinese and Japanese, which write
// no spaces between words, each ideograph and kana is a word.
func wordsOf(text string) []string {
	found := []string{}
	each := words.FromString(text)
	each.Joiners(&words.Joiners[string]{Middle: []rune("-\u2010\u2011")})
	for each.Next() {
		if word := each.Value(); strings.ContainsFunc(word,
			func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			found = append(found, word)
		}
	}
	return found
}

// count returns the sizes of a text.
func count(a arguments) (call.Result, error) {
	c := struct {
		Characters              int `json:"characters"`
		CharactersWithoutSpaces int `json:"characters_without_spaces"`
		CodePoints              int `json:"code_points"`
		Bytes                   int `json:"bytes"`
		Words                   int `json:"words"`
		Lines                   int `json:"lines"`
		Sentences               int `json:"sentences"`
		Paragraphs              int `json:"paragraphs"`
	}{CodePoints: utf8.RuneCountInString(a.Text), Bytes: len(a.Text), Words: len(wordsOf(a.Text))}
	for each := graphemes.FromString(a.Text); each.Next(); {
		c.Characters++
		if strings.TrimSpace(each.Value()) != "" {
			c.CharactersWithoutSpaces++
		}
	}
	for each := sentences.FromString(a.Text); each.Next(); {
		if len(wordsOf(each.Value())) > 0 {
			c.Sentences++
		}
	}
	inParagraph := false
	for _, line := range linesOf(a.Text) {
		c.Lines++
		isBlank := strings.TrimSpace(line) == ""
		if !isBlank && !inParagraph {
			c.Paragraphs++
		}
		inParagraph = !isBlank
	}
	output := fmt.Sprintf(
		"%d characters (%d without spaces), %d words, %d lines, %d sentences, %d paragraphs, %d code points, %d bytes",
		c.Characters, c.CharactersWithoutSpaces, c.Words, c.Lines, c.Sentences, c.Paragraphs, c.CodePoints, c.Bytes)
	return call.Result{Success: true, Output: output, Data: c}, nil
}

// counted is a word, or a line, and how often it occurs.
type counted struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
}

// tally counts equal items, in the order in which they first occur. Ignoring case, the first spelling is shown.
func tally(items []string, ignoreCase *bool) []*counted {
	var all []*counted
	known := map[string]*counted{}
	for _, item := range items {
		key := item
		if ignoreCase != nil && *ignoreCase {
			key = cases.Fold().String(item)
		}
		if known[key] == nil {
			known[key] = &counted{Item: item}
			all = append(all, known[key])
		}
		known[key].Count++
	}
	return all
}

// frequency returns how often each word occurs, the most frequent first.
func frequency(a arguments) (call.Result, error) {
	all := tally(wordsOf(a.Text), a.IgnoreCase)
	slices.SortStableFunc(all, func(x, y *counted) int { return cmp.Compare(y.Count, x.Count) })
	start, end, data := a.page(len(all), func(i int) int { return len(all[i].Item) + 32 })
	var output strings.Builder
	fmt.Fprintf(&output, "%d different words", len(all))
	page := append([]*counted{}, all[start:end]...)
	for _, c := range page {
		fmt.Fprintf(&output, "\n%d %s", c.Count, c.Item)
	}
	data["frequencies"] = page
	return call.Result{Success: true, Output: output.String() + more(data), Data: data}, nil
}

// cased changes the case of all letters, by the rules of a language.
func cased(a arguments) (call.Result, error) {
	tag := language.Und
	if a.Language != nil {
		var err error
		if tag, err = language.Parse(*a.Language); err != nil {
			return call.Result{},
				fmt.Errorf("language: %q is no language tag; write one such as tr or nl, or leave it out", *a.Language)
		}
	}
	caser := map[string]func(language.Tag, ...cases.Option) cases.Caser{"upper": cases.Upper, "lower": cases.Lower,
		"title": cases.Title}[a.Operation]
	return text(caser(tag).String(a.Text))
}

// reverse reverses the order of characters, each of which stays whole.
func reverse(text string) string {
	reversed, at := make([]byte, len(text)), len(text)
	for each := graphemes.FromString(text); each.Next(); {
		at -= copy(reversed[at-len(each.Value()):], each.Value())
	}
	return string(reversed)
}

// slice returns the characters from an offset.
func slice(a arguments) (call.Result, error) {
	total := length(a.Text)
	start, end, data := a.page(total, func(int) int { return 1 })
	var part strings.Builder
	at := 0
	for each := graphemes.FromString(a.Text); each.Next() && at < end; at++ {
		if at >= start {
			part.WriteString(each.Value())
		}
	}
	data["text"], data["characters"] = part.String(), end-start
	return call.Result{Success: true, Output: part.String() + more(data), Data: data}, nil
}
