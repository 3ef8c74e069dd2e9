package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// Stored returns the result that a text is the JSON of, as records have it, or false where it is
// anything else. What contradicts itself is none: a success with an error, a kind there is not.
func Stored(text []byte) (tool.Result, bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		return tool.Result{}, false
	}
	var stored struct {
		Says *bool `json:"success"`
		tool.Result
	}
	plain, err := jsontext.Plain(text, &stored)
	if err != nil {
		return tool.Result{}, false
	}
	decoder := json.NewDecoder(bytes.NewReader(plain))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&stored) != nil || stored.Says == nil {
		return tool.Result{}, false
	}
	result := stored.Result
	result.Success = *stored.Says
	if !result.Success && result.Kind == "" {
		result.Kind = tool.ToolFailed
	}
	if result.Success && (result.Kind != "" || result.Error != "") || !result.Success && !slices.Contains(tool.Kinds(), result.Kind) {
		return tool.Result{}, false
	}
	return result, true
}

// Outcome puts a result together of the parts in which a client hands it in. The zero value is ready.
type Outcome struct {
	parts []tool.Content
	first int // how many texts come before anything else
}

// Text adds a text. One with nothing in it says nothing.
func (o *Outcome) Text(text string) {
	if text == "" {
		return
	}
	if o.first == len(o.parts) {
		o.first++
	}
	o.parts = append(o.parts, tool.Content{Type: "text", Text: text})
}

// Part adds what is no text.
func (o *Outcome) Part(part tool.Content) { o.parts = append(o.parts, part) }

// Result returns what is [Outcome.Said], unless that is one text which is the JSON of a result: then
// it is that result.
func (o *Outcome) Result(failed bool) tool.Result {
	if len(o.parts) == 1 && o.first == 1 {
		if stored, ok := Stored([]byte(o.parts[0].Text)); ok && !(failed && stored.Success) {
			return stored
		}
	}
	return o.Said(failed)
}

// Said returns the result that the parts are of. The text that comes first is the output; where the
// call failed it is the error, and the text after it the output. Everything else is content.
//
// Of which kind a failure is, a text does not say: whatever a tool printed may be in it.
func (o *Outcome) Said(failed bool) tool.Result {
	result, rest, texts := tool.Result{Success: !failed}, o.parts, o.first
	next := func() string {
		if texts == 0 {
			return ""
		}
		text := rest[0].Text
		rest, texts = rest[1:], texts-1
		return text
	}
	if failed {
		result.Kind = tool.ToolFailed
		result.Error = Reason(result.Kind, next())
	}
	result.Output = next()
	if len(rest) > 0 {
		result.Content = rest
	}
	return result
}

// Reason is the reverse of [Failure]: the error in a text that says why a call failed.
func Reason(kind tool.Kind, text string) string {
	if text == string(kind) {
		return ""
	}
	return strings.TrimPrefix(text, string(kind)+": ")
}
