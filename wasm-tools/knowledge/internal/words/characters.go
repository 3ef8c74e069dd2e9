package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// kind is the role of a character in words.
type kind uint8

const (
	unknown         kind = iota // has not been looked at
	separator                   // is between words
	letter                      // is part of a word
	foldedLetter                // counts as other letters
	mark                        // is on a letter and does not count
	character                   // is of writing without spaces
	foldedCharacter             // counts as another one
)

// characters caches the kinds and the folded forms of characters.
type characters struct {
	kinds  [0x10000]kind // of the first plane
	folded map[rune]string
}

func (c *characters) kindOf(r rune) kind {
	if int(r) >= len(c.kinds) {
		return c.learn(r)
	}
	known := c.kinds[r]
	if known == unknown {
		known = c.learn(r)
		c.kinds[r] = known
	}
	return known
}

// withoutSpaces are the scripts that have no spaces between words. Hangul has, but the endings of its words
// change with the sentence, so pairs find more there, too.
var withoutSpaces = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

const longVowel, wideLongVowel = 'ー', 'ｰ' // belong to kana, though not to one script

func (c *characters) learn(r rune) kind {
	plain, folds := letter, foldedLetter
	switch {
	case unicode.Is(unicode.Mn, r) && r >= 0x300 && r < 0x370:
		return mark
	case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || r == utf8.RuneError:
		return separator
	case unicode.In(r, withoutSpaces...) && !unicode.IsDigit(r) || r == longVowel || r == wideLongVowel:
		plain, folds = character, foldedCharacter
	}
	text := fold(r)
	if text == string(r) || plain == character && utf8.RuneCountInString(text) > 1 {
		return plain
	}
	if c.folded == nil {
		c.folded = map[rune]string{}
	}
	c.folded[r] = text
	return folds
}

// equivalents maps letters that do not decompose to the letters that they count as.
var equivalents = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'ħ': "h", 'ı': "i", 'ł': "l", 'þ': "th", 'ς': "σ",
	'ё': "е",
}

// fold returns the letters that a letter counts as.
func fold(r rune) string {
	decomposed := norm.NFKD.String(string(r))
	accented := unicode.In(r, unicode.Latin, unicode.Greek)
	var b strings.Builder
	for _, d := range decomposed {
		if accented && unicode.Is(unicode.Mn, d) || !unicode.IsLetter(d) && !unicode.IsDigit(d) && !unicode.IsMark(d) {
			continue
		}
		b.WriteRune(unicode.ToLower(d))
	}
	var folded strings.Builder
	for _, d := range norm.NFC.String(b.String()) {
		if other, ok := equivalents[d]; ok {
			folded.WriteString(other)
		} else {
			folded.WriteRune(d)
		}
	}
	return folded.String()
}

const voiceSize = 3 // bytes of either mark

// voice returns a kana with the mark that follows it, if one does.
func voice(r rune, following []byte) (rune, bool) {
	if len(following) < voiceSize || following[0] != 0xe3 || following[1] != 0x82 ||
		following[2] != 0x99 && following[2] != 0x9a {
		return 0, false
	}
	composed, size := utf8.DecodeRuneInString(norm.NFC.String(string(r) + string(following[:voiceSize])))
	return composed, size > 0 && composed != r
}
