package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown returns a text that a guest or a server chose in a form that is safe to show in
// receipts and records: valid UTF-8, with U+FFFD for every character that a terminal would
// not show as itself, and cut after so many bytes, which "…" then follows.
func Shown(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || Deceives(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// Deceives reports whether a character makes text look like what it is not: a terminal or page
// obeys it, or shows nothing for it. These are control characters and line separators (general
// categories Cc, Zl and Zp), format characters (Cf), among them those that reorder text (Unicode
// Standard Annex #9, section 2) and the tags of Unicode's block Tags, and what else is not shown
// by default (Default_Ignorable_Code_Point in section 5.21 of the Unicode Standard): fillers and
// variation selectors. Line feeds and tabs are among them; who has a use for them lets them pass.
//
// Text that somebody decides by, and names that are compared, should have none of them. Text that
// is only read may have those that [Shapes] reports.
func Deceives(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Shapes reports whether a character that [Deceives] is one that honest text is written with: the
// joiners (Join_Control), which Persian, the scripts of India and emoji need, and the selectors
// that have a character shown as text or as an emoji, U+FE0E and U+FE0F.
func Shapes(r rune) bool {
	return r == '\ufe0e' || r == '\ufe0f' || unicode.Is(unicode.Join_Control, r)
}
