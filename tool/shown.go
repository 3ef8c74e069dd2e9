package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown makes untrusted text safe to show in receipts and records. It returns valid UTF-8 with U+FFFD in place of every
// character that a terminal would not show as itself, truncated to limit bytes followed by "…".
func Shown(text string, limit int) string {
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || Deceives(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// Deceives reports whether a character can disguise text, because a terminal or page interprets it or does not show it.
// These are control characters and line separators (general categories Cc, Zl and Zp), including line feeds and tabs;
// format characters (Cf), including those that reorder text (Unicode Standard Annex #9, section 2) and those of the
// block Tags; and other characters that are not shown by default (Default_Ignorable_Code_Point in section 5.21 of the
// Unicode Standard), such as fillers and variation selectors.
//
// Text that decisions are based on and names that are compared should not contain any of them. Other
// text may contain those that [Shapes] reports.
func Deceives(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector)
}

// Shapes reports whether a character that [Deceives] is needed in ordinary text: the joiners (Join_Control), which
// Persian, Indic scripts and emoji use, and the selectors between text and emoji presentation, U+FE0E and U+FE0F.
func Shapes(r rune) bool {
	return r == '\ufe0e' || r == '\ufe0f' || unicode.Is(unicode.Join_Control, r)
}
