package schema

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// shownRunes is how much of a value a message shows.
const shownRunes = 60

// sortedKeys is how many keys an object may have to be shown.
const sortedKeys = 1000

// show returns the start of a value as JSON for a message. What it costs does not
// depend on the size of the value.
func show(value any) string {
	return clipRunes(string(appendShown(nil, value)), shownRunes)
}

// appendShown writes a value, and stops where there is more than is shown.
func appendShown(to []byte, value any) []byte {
	const enough = shownRunes * utf8.UTFMax
	switch value := value.(type) {
	case string:
		return appendJSON(to, clipBytes(value, enough+utf8.UTFMax))
	case []any:
		to = append(to, '[')
		for i, element := range value {
			if len(to) > enough {
				return to
			}
			if i > 0 {
				to = append(to, ',')
			}
			to = appendShown(to, element)
		}
		return append(to, ']')
	case map[string]any:
		if len(value) > sortedKeys {
			return append(to, "an object of "+strconv.Itoa(len(value))+" keys"...)
		}
		to = append(to, '{')
		for i, key := range keys(value) {
			if len(to) > enough {
				return to
			}
			if i > 0 {
				to = append(to, ',')
			}
			to = append(appendJSON(to, clipBytes(key, enough+utf8.UTFMax)), ':')
			to = appendShown(to, value[key])
		}
		return append(to, '}')
	}
	return appendJSON(to, value)
}

// appendJSON writes a scalar.
func appendJSON(to []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return append(to, typeName(value)...)
	}
	return append(to, text...)
}

// clip shortens text for a message.
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
