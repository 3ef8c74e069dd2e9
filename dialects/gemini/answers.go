package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// answered is a part or a content.
type answered struct {
	Role     string            `json:"role"`
	Parts    json.RawMessage   `json:"parts"`
	Response *answeredFunction `json:"functionResponse" alias:"function_response"`
}

type answeredFunction struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Response     json.RawMessage `json:"response"`
	Parts        json.RawMessage `json:"parts"`
	WillContinue bool            `json:"willContinue" alias:"will_continue"`
}

// Answers reads parts with a functionResponse: one, an array, or those of contents, of which there may be
// one, an array, or a request with them. Other parts are ignored, and so is what precedes the model's last
// content. A functionResponse without an id is one of the Named.
//
// Its response is the JSON of a result, in the form of records, or has "output", or "error" if the call
// failed. An error that is null, false, 0 or empty counts as absent. With other members, the response itself is
// the data; that of a failure is without the error.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, "contents",
		func(r wire.Reader, a *wire.Answers, element *answered) error {
			if element.Role == "model" {
				a.Turn()
				return nil
			}
			if wire.Absent(element.Parts) {
				return element.Response.add(r, a)
			}
			return wire.Each(r, "parts", element.Parts, maxParts,
				func(r wire.Reader, p *answered) error { return p.Response.add(r, a) })
		})
}

// add adds the answer in the part that r reads; f is nil for parts of other kinds.
func (f *answeredFunction) add(r wire.Reader, a *wire.Answers) error {
	if f == nil {
		return nil
	}
	r = r.In("functionResponse")
	if f.Name == "" && f.ID == "" {
		return r.Fail("name", "is missing; it says which function is answered")
	}
	if f.WillContinue {
		return r.Fail("willContinue", "says that there is more to come; want the whole result")
	}
	result, err := f.result(r)
	if err != nil {
		return err
	}
	media, err := f.media(r)
	if err != nil {
		return err
	}
	result.Content = append(result.Content, media...)
	if f.ID == "" {
		return a.AddNamed(r, dialects.NamedOutput{Tool: f.Name, Result: result})
	}
	return a.Add(r, tool.Answer{CallID: f.ID, Result: result})
}

// result reads the response of a function, which must be an object.
func (f *answeredFunction) result(r wire.Reader) (tool.Result, error) {
	if wire.Absent(f.Response) {
		return tool.Result{Success: true}, nil
	}
	if stored, ok := wire.Stored(f.Response); ok {
		return stored, nil
	}
	var says struct {
		Output json.RawMessage `json:"output"`
		Error  json.RawMessage `json:"error"`
	}
	if err := r.Into("response", f.Response, &says); err != nil {
		return tool.Result{}, err
	}
	var outcome wire.Outcome
	failed := !wire.Empty(says.Error)
	if failed {
		outcome.Text(text(says.Error))
	}
	switch more := f.hasMore(); {
	case !failed && (more || len(says.Output) == 0):
		return tool.Result{Success: true, Data: f.Response}, nil
	case more:
		result := outcome.Said(failed)
		result.Data = without(f.Response, "error")
		return result, nil
	}
	if len(says.Output) > 0 && says.Output[0] == '"' {
		outcome.Text(text(says.Output))
		return outcome.Result(failed), nil
	}
	result := outcome.Result(failed)
	if shown, ok := several(says.Output); ok {
		result.Output, result.Data = shown.Text, shown.Data
		for _, said := range shown.Content {
			result.Content = append(result.Content, tool.Content{Type: "text", Text: said})
		}
	} else if len(says.Output) > 0 {
		result.Data = says.Output
	}
	return result, nil
}

// hasMore returns whether the response has other members than those that are for a model.
func (f *answeredFunction) hasMore() bool {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(f.Response, &members) // it is an object
	delete(members, "output")
	delete(members, "error")
	return len(members) > 0
}

// without returns an object without a member, or all of it if it is too large to be taken apart.
func without(object json.RawMessage, member string) json.RawMessage {
	read, err := tool.ParseArguments(string(object))
	if err != nil {
		return object
	}
	text, _ := read.Without(member).MarshalJSON() // which never fails
	return wire.Compact(text)
}

// text returns a string, or the JSON of any other value.
func text(value json.RawMessage) string {
	var said string
	if json.Unmarshal(value, &said) != nil {
		return string(value)
	}
	return said
}

// several returns the parts of an output that Results wrote for a result with content.
func several(written json.RawMessage) (output, bool) {
	var members map[string]json.RawMessage
	var shown output
	if json.Unmarshal(written, &members) != nil || json.Unmarshal(written, &shown) != nil {
		return output{}, false
	}
	for name := range members {
		if !slices.Contains([]string{"text", "data", "content"}, name) {
			return output{}, false
		}
	}
	return shown, len(shown.Content) > 0
}

// answeredMedium is a part of a function's response.
type answeredMedium struct {
	Inline *inlineData `json:"inlineData" alias:"inline_data"`
	File   *struct {
		URI      string `json:"fileUri" alias:"file_uri"`
		MIMEType string `json:"mimeType" alias:"mime_type"`
		Name     string `json:"displayName" alias:"display_name"`
	} `json:"fileData" alias:"file_data"`
}

func (f *answeredFunction) media(r wire.Reader) (media []tool.Content, err error) {
	err = wire.Each(r, "parts", f.Parts, wire.MaxParts, func(r wire.Reader, p *answeredMedium) error {
		switch {
		case p.Inline != nil && len(p.Inline.Data) > 0:
			media = append(media, tool.Content{Type: kind(p.Inline.MIMEType), Data: p.Inline.Data, MIMEType: p.Inline.MIMEType,
				Name: p.Inline.DisplayName})
		case p.File != nil && p.File.URI != "":
			media = append(media,
				tool.Content{Type: kind(p.File.MIMEType), URL: p.File.URI, MIMEType: p.File.MIMEType, Name: p.File.Name})
		default:
			return r.Fail("", "has neither inlineData nor fileData with content")
		}
		return nil
	})
	return media, err
}

// bytes64 are bytes in base64, of either alphabet: the provider's Python client writes that of URLs.
type bytes64 []byte

// UnmarshalJSON reads a string, or null.
func (b *bytes64) UnmarshalJSON(text []byte) error {
	return json.Unmarshal([]byte(strings.NewReplacer("-", "+", "_", "/").Replace(string(text))), (*[]byte)(b))
}
