package ledger

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of the index of words, which lacks what is beyond them.
const (
	maxWordsBytes = 64 << 10 // of the text of one call that is looked at
	maxWord       = 64       // bytes; a longer one, such as encoded data, is left out
	maxAsked      = 16       // words of a search
)

// wordsOf returns the words of a call's arguments and result, each once.
func wordsOf(e *Entry) (words []string) {
	result := e.Result()
	left, seen := maxWordsBytes, map[string]bool{}
	texts := []string{
		unescaped(e.Record.Function.Arguments), result.Error, result.Output, unescaped(string(result.Data)),
	}
	for _, part := range result.Content {
		texts = append(texts, part.Text)
	}
	for _, text := range texts {
		text = text[:min(len(text), left)]
		left -= len(text)
		eachWord(text, func(word string) {
			if !seen[word] {
				seen[word] = true
				words = append(words, word)
			}
		})
	}
	return words
}

// unescaped returns a JSON text with characters in place of the escapes in its strings. Escaped characters that are no
// letters become spaces. The result is not JSON.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		const hex = 4 // digits
		if !strings.HasPrefix(after, "u") || len(after) <= hex {
			b.WriteByte(' ')
			text = after[min(1, len(after)):]
			continue
		}
		code, _ := strconv.ParseUint(after[1:1+hex], 16, 16) // 0 if these are no digits, which separates words
		first := rune(code)
		text = after[1+hex:]
		if second, ok := strings.CutPrefix(text, `\u`); ok && utf16.IsSurrogate(first) && len(second) >= hex {
			code, _ := strconv.ParseUint(second[:hex], 16, 16)
			first, text = utf16.DecodeRune(first, rune(code)), second[hex:]
		}
		b.WriteRune(first)
	}
}

// eachWord calls found for the words of a text: what has letters, marks and digits alone, in lower case.
func eachWord(text string, found func(word string)) {
	inWord := func(r rune) bool {
		return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !inWord(r) }) {
		if word = strings.ToLower(word); len(word) <= maxWord {
			found(word)
		}
	}
}

// askedWords returns the words of a search, each once.
func askedWords(text string) (words []string) {
	seen := map[string]bool{}
	eachWord(text, func(word string) {
		if !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	})
	return words
}
