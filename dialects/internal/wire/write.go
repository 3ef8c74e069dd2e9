package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// Encode returns the JSON of a value as valid UTF-8, whatever JSON the value holds. It does not escape <, >
// and &, so that models do not read longer text.
func Encode(value any) (json.RawMessage, error) {
	text, err := jsontext.Encode(value)
	if err != nil {
		return nil, err
	}
	return bytes.ToValidUTF8(text, []byte("\uFFFD")), nil
}

// List writes a JSON array with what write returns for each element. An error from write need not say
// which element it is about.
func List[T, E any](r Reader, list []T, write func(element *T) (E, error)) (json.RawMessage, error) {
	written := make([]E, len(list))
	for i := range list {
		var err error
		if written[i], err = write(&list[i]); err != nil {
			return nil, r.Within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return Encode(written)
}

// Matched refuses an empty value of the member by which the provider matches results with calls.
func Matched(member, value string) error {
	if value == "" {
		return Reader{}.Fail(member, "is empty; the provider matches results with calls by it")
	}
	return nil
}

// Object returns arguments as a JSON object, for providers that accept nothing else. Blank arguments become
// {}. Arguments that are not a JSON object are wrapped, so that the model sees its own text:
// {"INVALID_JSON": "…"}.
func Object(arguments string) json.RawMessage {
	trimmed := strings.Trim(arguments, " \t\r\n")
	switch {
	case trimmed == "":
		return json.RawMessage("{}")
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		return json.RawMessage(trimmed)
	}
	return fmt.Appendf(nil, `{"INVALID_JSON":%s}`, jsontext.Quote(arguments))
}

// Input returns the arguments of a call as [Object] does. The free text of a custom call, whose parameter
// the call does not name, is wrapped too: {"input": "…"}.
func Input(call *tool.Call) json.RawMessage {
	if call.Type == tool.CustomCall {
		return fmt.Appendf(nil, `{"input":%s}`, jsontext.Quote(call.Function.Arguments))
	}
	return Object(call.Function.Arguments)
}

// Failure returns a text that says why a call failed. The result must be a failure.
func Failure(result *tool.Result) string {
	for _, kind := range []string{string(result.Kind), strings.ReplaceAll(string(result.Kind), "_", " ")} {
		if kind != "" && strings.HasPrefix(result.Error, kind+": ") {
			return result.Error // which says it already
		}
	}
	return cmp.Or(joined(": ", string(result.Kind), result.Error), string(tool.ToolFailed))
}

// Said returns a result as one text for a model, without the reason for failure: the output, or the data
// if there is none, and a description of each part of the content, each on a separate line.
func Said(result *tool.Result) string {
	said := []string{result.Output}
	if result.ModelReadsData() {
		said = []string{string(result.Data)}
	}
	for i := range result.Content {
		said = append(said, Mention(&result.Content[i]))
	}
	return joined("\n", said...)
}

// Text returns a result as one text, for providers that have no other form and no mark for failures: what
// [Said] returns, or the JSON of a result, in the form of records, for a failure. A success that looks like
// that JSON is written in that form too, so that [Stored] does not mistake one for the other.
func Text(result *tool.Result) (string, error) {
	said := Said(result)
	if result.Success {
		if _, looksLike := Stored([]byte(said)); !looksLike {
			return said, nil
		}
	}
	written := tool.Result{Success: result.Success, Output: said, Error: result.Error, Kind: result.Kind}
	if result.ModelReadsData() && len(result.Content) == 0 {
		written.Output, written.Data = "", result.Data // JSON within JSON needs no escapes
	}
	text, err := Encode(written)
	return string(text), err
}

// joined joins the words that are not empty.
func joined(separator string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), separator)
}

// Repeats returns whether a result's output is the JSON of its data.
func Repeats(result *tool.Result) bool {
	output := Compact([]byte(result.Output))
	return output != nil && bytes.Equal(output, Compact(result.Data))
}

// Compact returns JSON without white space, and nil for text that is not JSON.
func Compact(value []byte) []byte {
	var text bytes.Buffer
	if json.Compact(&text, value) != nil {
		return nil
	}
	return text.Bytes()
}

// Mention describes a part of a result, for models that cannot look at it.
func Mention(part *tool.Content) string {
	if part.Type == "text" {
		return part.Text
	}
	size := ""
	if len(part.Data) > 0 {
		size = fmt.Sprintf("%d bytes, not shown", len(part.Data))
	}
	return joined(" ", part.Text,
		fmt.Sprintf("[%s: %s]", part.Type, joined(", ", part.Name, part.MIMEType, part.URL, size)))
}
