package schema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// descend goes from a value to the member or element that a pointer token names.
func descend(value any, token string) (next any, isElement, found bool) {
	switch value := value.(type) {
	case map[string]any:
		next, found = value[token]
		return next, false, found
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(value) {
			return nil, true, false
		}
		return value[i], true, true
	}
	return nil, false, false
}

// lastToken returns the last token of a location's pointer.
func lastToken(location string) string {
	_, pointer, _ := strings.Cut(location, "#")
	tokens, _ := parsePointer(pointer)
	if len(tokens) == 0 {
		return ""
	}
	return tokens[len(tokens)-1]
}

// parentLocation returns a location without its last token.
func parentLocation(location string) string {
	if i := strings.LastIndexByte(location, '/'); i > strings.IndexByte(location, '#') {
		return location[:i]
	}
	return location
}

// typesText lists the types that a schema allows.
func typesText(want any) string {
	names, isList := want.([]any)
	if !isList {
		names = []any{want}
	}
	var texts []string
	for _, name := range names {
		text, _ := name.(string)
		texts = append(texts, text)
	}
	return strings.Join(texts, " or ")
}

// oneOfText lists the values that a schema allows.
func oneOfText(want any) string {
	values, _ := want.([]any)
	var texts []string
	for _, value := range values[:min(len(values), maxKnown)] {
		texts = append(texts, show(value))
	}
	if more := len(values) - len(texts); more > 0 {
		texts = append(texts, moreText(more))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "one of " + strings.Join(texts, ", ")
}

// sizeMessage explains a bound on a number or on a size, or returns "".
func sizeMessage(keyword string, want, value any) string {
	bound := show(want)
	switch keyword {
	case "minimum":
		return fmt.Sprintf("must be at least %s, got %s", bound, show(value))
	case "maximum":
		return fmt.Sprintf("must be at most %s, got %s", bound, show(value))
	case "exclusiveMinimum":
		return fmt.Sprintf("must be more than %s, got %s", bound, show(value))
	case "exclusiveMaximum":
		return fmt.Sprintf("must be less than %s, got %s", bound, show(value))
	case "multipleOf":
		return fmt.Sprintf("must be a multiple of %s, got %s", bound, show(value))
	case "minLength", "minItems", "minProperties":
		return fmt.Sprintf("must have at least %s, has %d", counted(bound, keyword), length(value))
	case "maxLength", "maxItems", "maxProperties":
		return fmt.Sprintf("must have at most %s, has %d", counted(bound, keyword), length(value))
	}
	return ""
}

// counted names what a keyword counts.
func counted(bound, keyword string) string {
	noun := "character"
	if strings.HasSuffix(keyword, "Items") {
		noun = "item"
	} else if strings.HasSuffix(keyword, "Properties") {
		noun = "key"
	}
	if bound != "1" {
		noun += "s"
	}
	return bound + " " + noun
}

// length returns how many characters, elements or members a value has.
func length(value any) int {
	switch value := value.(type) {
	case string:
		return utf8.RuneCountInString(value)
	case []any:
		return len(value)
	case map[string]any:
		return len(value)
	}
	return 0
}

// otherMessage explains the keywords that need no value to be explained.
func otherMessage(keyword string, want any, message string) string {
	switch keyword {
	case "pattern":
		return "must match the pattern " + show(want)
	case "not":
		return "has a form that is not allowed"
	case "oneOf":
		return "fits more than one of the allowed forms; it must fit exactly one"
	case "minContains", "contains":
		return "does not have enough items of the wanted form"
	case "maxContains":
		return "has too many items of the form that is limited to " + show(want)
	case "additionalItems":
		return "has too many items"
	}
	return plainMessage(message)
}

var (
	typeMessage = regexp.MustCompile(`^expected (.+), but got (\w+)$`)
	enumMessage = regexp.MustCompile(`^value must be (.+)$`)
)

// plainMessage rewords a message of the validator that could not be explained from the
// schema, such as one about a schema that does not fit its own schema.
func plainMessage(message string) string {
	message = strings.TrimPrefix(message, "jsonschema: ")
	if parts := typeMessage.FindStringSubmatch(message); parts != nil {
		return "want " + parts[1] + ", got " + parts[2]
	}
	if parts := enumMessage.FindStringSubmatch(message); parts != nil {
		return "want " + parts[1]
	}
	return clip(message)
}

func appendNew(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// clipList shortens a list for a message.
func clipList(list []string) []string {
	if len(list) <= maxKnown {
		return list
	}
	return append(slices.Clone(list[:maxKnown]), moreText(len(list)-maxKnown))
}

func moreText(more int) string { return fmt.Sprintf("… %d more", more) }

// isInteger reports whether a number has no fraction as it is written.
func isInteger(number json.Number) bool {
	return !strings.ContainsAny(string(number), ".eE")
}
