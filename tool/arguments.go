package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Limits on the arguments of one call. They bound the cost of hostile input and are far above what a model writes.
const (
	MaxArgumentsBytes = 1 << 20
	MaxArgumentsDepth = 64
)

// ArgumentsError is the error of [ParseArguments].
type ArgumentsError struct{ Err error }

// Error returns the cause, worded for a model.
func (e *ArgumentsError) Error() string { return "invalid arguments: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ArgumentsError) Unwrap() error { return e.Err }

// Arguments is a JSON object whose members keep their order and their text, so that numbers are passed on unchanged.
// The zero value is an empty object. It is immutable: With and Without return changed copies.
type Arguments struct {
	members  []member
	document *jsontext.Document // that members are from; nil if there is none
}

type member struct {
	name  string
	value json.RawMessage
}

// ParseArguments parses the arguments of a call. Empty text is an empty object: some models write that
// to call a tool without parameters.
//
// It rejects anything but one JSON object in UTF-8, duplicate keys in any object (parsers disagree
// on which one wins), keys with invisible characters, and text over the limits. The error is an
// [*ArgumentsError] and is worded for a model.
func ParseArguments(text string) (Arguments, error) {
	if len(text) > MaxArgumentsBytes {
		return Arguments{}, &ArgumentsError{fmt.Errorf("%d bytes are over the limit of %d", len(text), MaxArgumentsBytes)}
	}
	if !utf8.ValidString(text) {
		return Arguments{}, &ArgumentsError{errors.New("the text is not valid UTF-8")}
	}
	if strings.TrimSpace(text) == "" {
		return Arguments{}, nil
	}
	arguments, err := read(text)
	if err != nil {
		return Arguments{}, &ArgumentsError{err}
	}
	return arguments, nil
}

// Document returns the object as [ParseArguments] has parsed it, or nil if With or Without has made
// it. It is for packages of this module, which need not parse the text again.
func (a Arguments) Document() *jsontext.Document { return a.document }

// Len returns the number of members.
func (a Arguments) Len() int { return len(a.members) }

// Names returns the members' names in order.
func (a Arguments) Names() []string {
	names := make([]string, len(a.members))
	for i, m := range a.members {
		names[i] = m.name
	}
	return names
}

// Get returns the JSON text of a member's value. The caller must not change it.
func (a Arguments) Get(name string) (json.RawMessage, bool) {
	if at := a.index(name); at >= 0 {
		return a.members[at].value, true
	}
	return nil, false
}

func (a Arguments) index(name string) int {
	return slices.IndexFunc(a.members, func(m member) bool { return m.name == name })
}

// With returns a copy in which the member has the given value, which must be JSON.
func (a Arguments) With(name string, value json.RawMessage) Arguments {
	members := append(make([]member, 0, len(a.members)+1), a.members...)
	if at := a.index(name); at >= 0 {
		members[at].value = value
		return Arguments{members: members}
	}
	return Arguments{members: append(members, member{name, value})}
}

// Without returns a copy that lacks the members with the given names. Without names it returns all
// members, and frees the parsed document.
func (a Arguments) Without(names ...string) Arguments {
	if len(names) == 0 {
		return Arguments{members: a.members}
	}
	return Arguments{members: slices.DeleteFunc(slices.Clone(a.members),
		func(m member) bool { return slices.Contains(names, m.name) })}
}

// MarshalJSON writes the members in order, with their values unchanged.
func (a Arguments) MarshalJSON() ([]byte, error) {
	text := append(make([]byte, 0, a.size()), '{')
	for i, m := range a.members {
		if i > 0 {
			text = append(text, ',')
		}
		if plain(m.name) {
			text = append(append(append(text, '"'), m.name...), '"')
		} else {
			name, err := json.Marshal(m.name)
			if err != nil {
				return nil, err
			}
			text = append(text, name...)
		}
		text = append(append(text, ':'), m.value...)
	}
	return append(text, '}'), nil
}

// size returns the length of the object as text, if its names need no escapes.
func (a Arguments) size() int {
	size := len("{}")
	for _, m := range a.members {
		size += len(m.name) + len(m.value) + len(`"":,`)
	}
	return size
}

// AppendCanonical appends a text that is equal for arguments that differ only in the order of their members and in
// white space. The members of nested objects keep their order, and numbers and strings are unchanged.
func (a Arguments) AppendCanonical(text []byte) []byte {
	sorted := slices.Clone(a.members)
	slices.SortFunc(sorted, func(a, b member) int { return strings.Compare(a.name, b.name) })
	text = append(slices.Grow(text, a.size()), '{')
	for _, m := range sorted {
		text = strconv.AppendQuote(text, m.name)
		text = append(text, ':')
		text = appendCompact(text, m.value)
		text = append(text, ',')
	}
	return append(text, '}')
}

// appendCompact appends a JSON value without insignificant white space.
func appendCompact(text, value []byte) []byte {
	if !bytes.ContainsAny(value, " \t\r\n") {
		return append(text, value...)
	}
	compact := bytes.NewBuffer(text)
	if json.Compact(compact, value) != nil { // not JSON: the caller broke the contract of With
		return append(text, value...)
	}
	return compact.Bytes()
}

// plain reports whether a text needs no escapes in JSON, like most names.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

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
