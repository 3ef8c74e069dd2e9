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
	limits := jsontext.Limits{Depth: MaxArgumentsDepth, Values: len(text) + 1, Shallow: true, Name: isUnseen}
	doc, err := jsontext.Read(unending, text, limits)
	if err != nil || doc.Root().Kind() != jsontext.Object {
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

// isUnseen reports whether something in a name cannot be seen.
func isUnseen(name string) bool { return strings.ContainsFunc(name, unseen) }
