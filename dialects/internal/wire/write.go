package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// InvalidArguments is the one member of the object that stands for arguments that are no JSON
// object. It holds their text.
const InvalidArguments = "INVALID_JSON"

// Encode returns the JSON of a value. It leaves <, > and & as they are, so that what a model
// reads is not longer than it was. It is UTF-8 whatever the JSON is that the value holds.
func Encode(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.ToValidUTF8(bytes.TrimSuffix(text.Bytes(), []byte("\n")), []byte("\uFFFD")), nil
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

// CustomInput is the one member of the object that stands for the free text of a custom call. The
// parameter that takes it has a name of its own, which the call does not say.
const CustomInput = "input"

// Object returns arguments as a JSON object, for providers that take nothing else. Arguments that
// are one are returned as they are, and blank ones as {}. Anything else is wrapped, so that the
// model sees what it wrote: {"INVALID_JSON": "…"}.
func Object(arguments string) (json.RawMessage, error) {
	trimmed := strings.Trim(arguments, " \t\r\n")
	switch {
	case trimmed == "":
		return json.RawMessage("{}"), nil
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		return json.RawMessage(trimmed), nil
	}
	return Encode(map[string]string{InvalidArguments: arguments})
}

// Input returns the arguments of a call as [Object] does. The free text of a custom call is wrapped
// too: {"input": "…"}.
func Input(call *tool.Call) (json.RawMessage, error) {
	if call.Type == tool.CustomCall {
		return Encode(map[string]string{CustomInput: call.Function.Arguments})
	}
	return Object(call.Function.Arguments)
}

// Failure says in one text why a call failed. The result must be that of a failure.
func Failure(result *tool.Result) string {
	switch {
	case result.Error != "" && result.Kind != "":
		return string(result.Kind) + ": " + result.Error
	case result.Error != "":
		return result.Error
	case result.Kind != "":
		return string(result.Kind)
	}
	return string(tool.ToolFailed)
}

// Repeats returns whether a result's output is nothing but the text of its data.
func Repeats(result *tool.Result) bool {
	var output, data bytes.Buffer
	return json.Compact(&output, []byte(result.Output)) == nil && json.Compact(&data, result.Data) == nil &&
		bytes.Equal(output.Bytes(), data.Bytes())
}

// Mention says in words what a part of a result is, for models that cannot look at it.
func Mention(part *tool.Content) string {
	if part.Type == "text" {
		return part.Text
	}
	var about []string
	for _, word := range []string{part.Name, part.MIMEType, part.URL} {
		if word != "" {
			about = append(about, word)
		}
	}
	if len(part.Data) > 0 {
		about = append(about, fmt.Sprintf("%d bytes, not shown", len(part.Data)))
	}
	mention := fmt.Sprintf("[%s: %s]", part.Type, strings.Join(about, ", "))
	if part.Text != "" {
		return part.Text + " " + mention
	}
	return mention
}
