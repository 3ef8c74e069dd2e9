package tool

import (
	"context"
	"strings"
	"unicode"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// readMembers returns the members of the object that the text is, or false if there is
// anything to refuse; see [refusal]. The text must be UTF-8 and not blank.
func readMembers(text string) ([]member, bool) {
	// What looks blank behind the object is let pass, though JSON knows four such bytes only.
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	var unending context.Context
	doc, err := jsontext.Read(unending, text, jsontext.Limits{Depth: MaxArgumentsDepth, Values: len(text) + 1})
	if err != nil || doc.Root().Kind() != jsontext.Object || !isSeen(doc.Root()) {
		return nil, false
	}
	var members []member
	source := []byte(text)
	for name, value := range doc.Root().Members() {
		start, end := value.Span()
		members = append(members, member{name.String(), source[start:end:end]})
	}
	return members, true
}

// isSeen reports whether all characters of all names can be seen.
func isSeen(v jsontext.Value) bool {
	for _, element := range v.Elements() {
		if !isSeen(element) {
			return false
		}
	}
	for name, value := range v.Members() {
		if strings.ContainsFunc(name.String(), unseen) || !isSeen(value) {
			return false
		}
	}
	return true
}
