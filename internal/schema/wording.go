package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// finding explains why a value does not pass a check.
func (c *check) finding(v jsontext.Value) finding {
	switch c.keyword {
	case "enum":
		return wanting(c.keyword, oneOfText(c.want), show(v))
	case "const":
		return wanting(c.keyword, show(c.want), show(v))
	case "pattern":
		return finding{keyword: c.keyword, message: "must match the pattern " + show(c.want)}
	}
	return finding{keyword: c.keyword, message: sizeMessage(c.keyword, show(c.want), v)}
}

func oneOfText(want jsontext.Value) string {
	var shown []string
	for i, value := range want.Elements() {
		if i == maxKnown {
			shown = append(shown, moreText(want.Len()-maxKnown))
			break
		}
		shown = append(shown, show(value))
	}
	if len(shown) == 1 {
		return shown[0]
	}
	return "one of " + strings.Join(shown, ", ")
}

// sizeMessage explains a bound on a number or on a size.
func sizeMessage(keyword, bound string, v jsontext.Value) string {
	if b, isBound := bounds[keyword]; isBound {
		return fmt.Sprintf("must be %s %s, got %s", b.words, bound, show(v))
	}
	if keyword == "multipleOf" {
		return fmt.Sprintf("must be a multiple of %s, got %s", bound, show(v))
	}
	size, noun := v.Len(), "item"
	switch keyword[3:] {
	case "Length":
		size, noun = utf8.RuneCountInString(v.String()), "character"
	case "Properties":
		noun = "key"
	}
	if bound != "1" {
		noun += "s"
	}
	least := "least"
	if keyword[1] == 'a' {
		least = "most"
	}
	return fmt.Sprintf("must have at %s %s %s, has %d", least, bound, noun, size)
}

func moreText(more int) string { return fmt.Sprintf("… %d more", more) }

// shownRunes is the maximum number of characters of a value that a message shows.
const shownRunes = 60

// show returns the start of a value for a message, without white space, at a cost that does not depend on its size.
func show(v jsontext.Value) string {
	const enough = shownRunes*utf8.UTFMax + 2*utf8.UTFMax
	text := v.Text()
	shown := make([]byte, 0, min(len(text), enough))
	inString := false
	for i := 0; i < len(text) && len(shown) < enough; i++ {
		switch c := text[i]; {
		case c == '\\':
			shown = append(shown, c)
			i++
		case c == '"':
			inString = !inString
		case !inString && strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		}
		shown = append(shown, text[i])
	}
	return clipRunes(clipBytes(string(shown), enough-utf8.UTFMax), shownRunes)
}

func clip(text string) string { return clipRunes(text, 100) }

func clipRunes(text string, limit int) string {
	short := clipBytes(text, limit*utf8.UTFMax)
	runes := []rune(short)
	if len(runes) <= limit {
		if len(short) < len(text) {
			return short + "…"
		}
		return text
	}
	return string(runes[:limit]) + "…"
}

// clipBytes cuts text at the start of a rune.
func clipBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
