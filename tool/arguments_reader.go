package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// read parses an object. The text must be UTF-8 and not blank.
func read(text string) (Arguments, error) {
	// Any white space may follow the object, though JSON allows only four characters.
	source := strings.TrimRightFunc(text, unicode.IsSpace)
	limits := jsontext.Limits{Depth: MaxArgumentsDepth, Values: len(text) + 1, Name: checkSeen}
	doc, err := jsontext.Parse(source, limits)
	if unread, ok := errors.AsType[*jsontext.Error](err); ok {
		return Arguments{}, refusal(text, unread)
	}
	if err != nil {
		return Arguments{}, err
	}
	if doc.Root().Kind() != jsontext.Object {
		return Arguments{}, fmt.Errorf("want a JSON object such as {\"key\": \"value\"}, not %s", describe(doc.Root()))
	}
	members := slices.Grow([]member(nil), doc.Root().Len())
	whole := []byte(source)
	for name, value := range doc.Root().Members() {
		start, end := value.Span()
		members = append(members, member{name.String(), whole[start:end:end]})
	}
	return Arguments{members, doc}, nil
}

// checkSeen rejects a name with an invisible character, because it looks the same as another name.
func checkSeen(name string) error {
	if strings.ContainsFunc(name, Deceives) {
		return fmt.Errorf("the key %+q holds a character that cannot be seen; leave it out", name)
	}
	return nil
}

// refusal words the reason why a text was rejected.
func refusal(text string, unread *jsontext.Error) error {
	switch {
	case unread.Err == jsontext.ErrRepeated:
		return fmt.Errorf("%w; give it once", unread)
	case unread.Err == jsontext.ErrDepth:
		return fmt.Errorf("nested deeper than %d levels", MaxArgumentsDepth)
	case unread.Err == jsontext.ErrBehind:
		return fmt.Errorf("text follows the JSON value, at byte %d", unread.Offset)
	case unread.Err != jsontext.ErrSyntax:
		return unread.Err
	case unread.Offset >= len(strings.TrimRightFunc(text, unicode.IsSpace)):
		return fmt.Errorf("the JSON ends too early, at byte %d", len(text))
	}
	return fmt.Errorf("not JSON: %w", jsontext.FaultIn(text))
}

func describe(v jsontext.Value) string {
	switch v.Kind() {
	case jsontext.Array:
		return "an array"
	case jsontext.String:
		return "a string"
	case jsontext.Number:
		return "a number"
	default:
		return v.Text()
	}
}
