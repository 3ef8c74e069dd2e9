package answer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// maxParts is the maximum number of parts of a result. In the host's memory and in a record, each takes some ten times
// as many bytes as the guest writes for it.
const maxParts = 1000

var errParts = fmt.Errorf("there are more than %d parts", maxParts)

// readContent reads the parts of a result, one after the other, and returns the names of the first of their
// members that parts do not have, such as content[0].mimeType.
func readContent(ctx context.Context, list []byte) (content []tool.Content, unknown []string, err error) {
	doc, err := readJSON(ctx, list, jsontext.Limits{Values: maxParts + 1})
	if errors.Is(err, jsontext.ErrValues) {
		return nil, nil, errParts
	}
	if err != nil {
		return nil, nil, err
	}
	content = []tool.Content{}
	if doc.Root().Kind() != jsontext.Array {
		err := json.Unmarshal(list, &content) // null, or an error that names the type
		return content, nil, rephrase(err)
	}
	for _, element := range doc.Root().Elements() {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		var part tool.Content
		start, end := element.Span()
		if err := json.Unmarshal(list[start:end], &part); err != nil {
			return nil, nil, fmt.Errorf("part %d: %w", len(content), rephrase(err))
		}
		strange, err := unknownMembers(ctx, list[start:end])
		if err != nil {
			return nil, nil, err
		}
		for _, name := range strange[:min(len(strange), maxParts-len(unknown))] {
			unknown = append(unknown, fmt.Sprintf("content[%d].%s", len(content), name))
		}
		content = append(content, part)
	}
	return content, unknown, nil
}

// contentMembers are the names of the members of a part, in any upper or lower case.
var contentMembers = []string{"type", "text", "data", "url", "name", "mime_type"}

// unknownMembers returns the names of the first members of an object that parts do not have.
func unknownMembers(ctx context.Context, part []byte) (names []string, err error) {
	doc, err := readJSON(ctx, part, jsontext.Limits{Values: len(part) + 1})
	if err != nil {
		return nil, err
	}
	for name := range doc.Root().Members() {
		isMember := func(known string) bool { return strings.EqualFold(known, name.String()) }
		if len(names) < maxParts && !slices.ContainsFunc(contentMembers, isMember) {
			names = append(names, tool.Shown(name.String(), maxShown))
		}
	}
	return names, nil
}

// rephrase returns the standard library's error about a value in terms of the value.
func rephrase(err error) error {
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return errors.New("data: want base64")
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	want := "an object"
	switch wrong.Type.Kind() {
	case reflect.String:
		want = "a string"
	case reflect.Slice:
		if want = "a list of parts"; wrong.Type.Elem().Kind() == reflect.Uint8 {
			want = "a string in base64"
		}
	}
	got, _, _ := strings.Cut(wrong.Value, " ") // a number may be long
	if wrong.Field != "" {
		return fmt.Errorf("%s: want %s, not a JSON %s", wrong.Field, want, got)
	}
	return fmt.Errorf("want %s, not a JSON %s", want, got)
}
