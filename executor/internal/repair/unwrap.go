package repair

import (
	"encoding/json"
	"slices"
)

// unwrap returns the arguments that stand inside others under a name that is no parameter.
// names are those of the tool.
func (w *walk) unwrap(text json.RawMessage, root place, names []string) json.RawMessage {
	outer := members(text)
	if len(outer) != 1 || outer[0].text[0] != '{' {
		return text
	}
	name := outer[0].name
	wrapper := slices.Contains([]string{"arguments", "input", "parameters"}, name) || slices.Contains(names, name)
	if !wrapper || w.isParameter(root, name) {
		return text
	}
	for _, m := range members(outer[0].text) {
		if !w.isParameter(root, m.name) {
			return text
		}
	}
	w.note(&spot{}, Unwrap, text, outer[0].text)
	return outer[0].text
}

// isParameter reports whether a model may set a member of the arguments.
func (w *walk) isParameter(root place, name string) bool {
	return !w.reserved(name) && root.declares(name)
}
