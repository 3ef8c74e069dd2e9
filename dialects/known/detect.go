package known

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
)

// detectWhole returns the name of the dialect of a whole response, or of a report of an error. OpenAI's two APIs report
// errors in the same form, which is found to be [dialects.OpenAI]'s.
// //
// An array, or several documents as in JSON lines, are judged by the first. Gemini streams an array unless it is asked
// for server-sent events, and MCP has batches of requests and one message on each line; in other dialects it would be
// several responses.
func detectWhole(document []byte) (name string, ok bool) {
	if len(document) > dialects.MaxDocument {
		return "", false
	}
	document, rest := wire.Leading(wire.Trimmed(document))
	isList := wire.First(document) == '['
	if isList {
		errFirst := errors.New("one is enough")
		err := wire.Each(wire.Reader{}, "", document, 1, func(_ wire.Reader, element *json.RawMessage) error {
			document = *element
			return errFirst
		})
		if err != errFirst {
			return "", false // an empty array, or not JSON
		}
	}
	shape, ok := shapeOf(document)
	fits := shape.responses()
	if !ok || len(fits) != 1 || (isList && fits[0] != dialects.Gemini || rest != nil) && fits[0] != dialects.MCP {
		return "", false
	}
	return fits[0], true
}

// detectStream returns the name of the dialect of a transcript, judging by the first event that fits any dialect.
func detectStream(document []byte) (name string, ok bool) {
	if len(document) > dialects.MaxDocument {
		return "", false
	}
	if !wire.IsTranscript(document) {
		// Only Gemini streams arrays.
		if name, _ = detectWhole(document); name == dialects.Gemini && wire.First(document) == '[' {
			return dialects.Gemini, true
		}
		return "", false
	}
	for event, err := range wire.Transcript(document) {
		if err != nil {
			return "", false
		}
		shape, ok := shapeOf(event.Data)
		if !ok {
			continue
		}
		switch fits := shape.events(event.Name); len(fits) {
		case 0: // a ping, say
		case 1:
			return fits[0], true
		default:
			return "", false
		}
	}
	return "", false
}

// shape is the union of the members that distinguish responses and events.
type shape struct {
	Object         json.RawMessage `json:"object"`
	Type           json.RawMessage `json:"type"`
	Choices        json.RawMessage `json:"choices"`
	Output         json.RawMessage `json:"output"`
	Content        json.RawMessage `json:"content"`
	Role           json.RawMessage `json:"role"`
	Candidates     json.RawMessage `json:"candidates"`
	PromptFeedback json.RawMessage `json:"promptFeedback" alias:"prompt_feedback"`
	Usage          json.RawMessage `json:"usageMetadata" alias:"usage_metadata"`
	JSONRPC        json.RawMessage `json:"jsonrpc"`
	Error          json.RawMessage `json:"error"`
}

// shapeOf returns the outermost members of a document, or false if it is not an object.
func shapeOf(document []byte) (read shape, ok bool) {
	ok = wire.First(document) == '{' && decode.Unmarshal(document, &read) == nil
	return read, ok
}

// responses returns the dialects of responses of this shape. Servers that imitate OpenAI leave out "object".
func (s *shape) responses() []string {
	fits := fitting(
		isList(s.Choices),
		is(s.Object, "response") && isList(s.Output),
		is(s.Type, "message") && is(s.Role, "assistant") && isList(s.Content),
		isList(s.Candidates) || (s.Candidates == nil || string(s.Candidates) == "null") && isObject(s.PromptFeedback),
		is(s.JSONRPC, "2.0"),
	)
	if len(fits) == 0 {
		return s.reports("")
	}
	return fits
}

// reports returns the dialect in which the document reports an error. name is that of the event, if it is one.
func (s *shape) reports(name string) []string {
	var failure struct{ Status string } // only Gemini has it
	said := isObject(s.Error) && json.Unmarshal(s.Error, &failure) == nil
	switch typed := is(s.Type, "error"); {
	case typed && said:
		return []string{dialects.Anthropic}
	case (typed || s.Type == nil && s.Error == nil) && name == "error":
		return []string{dialects.Responses}
	case s.Type != nil:
		return nil
	case said && failure.Status != "":
		return []string{dialects.Gemini}
	case said || bytes.HasPrefix(s.Error, []byte(`"`)):
		return []string{dialects.OpenAI}
	}
	return nil
}

func (s *shape) events(name string) []string {
	var kind string
	if s.Type != nil && json.Unmarshal(s.Type, &kind) != nil {
		return nil
	}
	kind = cmp.Or(kind, name)
	fits := fitting(
		isList(s.Choices),
		strings.HasPrefix(kind, "response."),
		slices.Contains([]string{"message_start", "message_delta", "message_stop", "content_block_start",
			"content_block_delta", "content_block_stop"}, kind),
		isList(s.Candidates) || isObject(s.PromptFeedback) || isObject(s.Usage),
		is(s.JSONRPC, "2.0"),
	)
	if len(fits) == 0 {
		return s.reports(kind)
	}
	return fits
}

// fitting returns the names of the dialects that fit, given in the order of [Names].
func fitting(fits ...bool) []string {
	return slices.DeleteFunc(dialects.Names(),
		func(name string) bool { return !fits[slices.Index(dialects.Names(), name)] })
}

func isList(value json.RawMessage) bool { return bytes.HasPrefix(value, []byte("[")) }

func isObject(value json.RawMessage) bool { return bytes.HasPrefix(value, []byte("{")) }

func is(value json.RawMessage, text string) bool { return string(value) == `"`+text+`"` }
