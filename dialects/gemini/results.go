package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

type callPart struct {
	FunctionCall     functionCall `json:"functionCall"`
	ThoughtSignature string       `json:"thoughtSignature,omitempty"`
}

// Calls writes parts with a functionCall each, as in a model's content, and their signatures. Arguments that
// are not a JSON object are wrapped: {"INVALID_JSON": "…"}, and so is the text of a custom call: {"input":
// "…"}.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	return wire.List(reader("calls"), calls, func(call *tool.Call) (callPart, error) {
		written := functionCall{ID: sent(call.ID), Name: call.Function.Name, Args: wire.Input(call)}
		return callPart{written, call.Signature}, wire.Matched("function.name", call.Function.Name)
	})
}

// sent returns the id if it is the provider's own, and "" if it was made here.
func sent(id string) string {
	if _, made := position(id); made {
		return ""
	}
	return id
}

type resultPart struct {
	FunctionResponse functionResponse `json:"functionResponse"`
}

type functionResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	Parts    []mediumPart    `json:"parts,omitempty"`
}

type mediumPart struct {
	InlineData inlineData `json:"inlineData"`
}

type inlineData struct {
	MIMEType    string  `json:"mimeType" alias:"mime_type"`
	Data        bytes64 `json:"data"`
	DisplayName string  `json:"displayName,omitempty" alias:"display_name"`
}

// Results writes parts with a functionResponse each, one for each record. Its response has "output", and
// "error" if the call failed. Output is the text of a result, or the data if there is no text or it is the
// JSON of the data. If there is also content that the provider cannot view, it is {"text","content"} or
// {"data","content"}.
func (dialect) Results(records []tool.Record) (json.RawMessage, error) {
	return wire.List(reader("results"), ordered(records), func(record *tool.Record) (resultPart, error) {
		if err := wire.Matched("function.name", record.Function.Name); err != nil {
			return resultPart{}, err
		}
		response, media, err := answer(&record.Result)
		return resultPart{functionResponse{sent(record.ID), record.Function.Name, response, media}}, err
	})
}

// ordered returns the records, those with made ids in the order of their calls.
func ordered(records []tool.Record) []tool.Record {
	ordered, places, made := slices.Clone(records), []int{}, map[int]int{}
	for i := range records {
		if at, ok := position(records[i].ID); ok {
			places, made[i] = append(places, i), at
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(places), func(a, b int) int { return made[a] - made[b] })
	for i, place := range places {
		ordered[place] = records[sorted[i]]
	}
	return ordered
}

// output is the output of a result that has several parts.
type output struct {
	Text    string          `json:"text,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Content []string        `json:"content,omitempty"`
}

// answer returns a result in the provider's form, and its media.
func answer(result *tool.Result) (json.RawMessage, []mediumPart, error) {
	shown := output{Text: result.Output}
	if result.ModelReadsData() || wire.Repeats(result) {
		shown = output{Data: result.Data}
		if !json.Valid(shown.Data) {
			shown.Data = json.RawMessage(jsontext.Quote(string(shown.Data)))
		}
	}
	var media []mediumPart
	for i := range result.Content {
		part := &result.Content[i]
		if looked(part.MIMEType) && len(part.Data) > 0 {
			media = append(media, mediumPart{inlineData{part.MIMEType, part.Data, part.Name}})
			continue
		}
		shown.Content = append(shown.Content, wire.Mention(part))
	}
	var response struct {
		Output any    `json:"output,omitempty"`
		Error  string `json:"error,omitempty"`
	}
	response.Output = shown.simplest()
	if !result.Success {
		response.Error = wire.Failure(result)
	} else if response.Output == nil {
		response.Output = ""
	}
	encoded, err := wire.Encode(response)
	return encoded, media, err
}

// simplest returns the output without an object around a single part; nil if it is empty.
func (o output) simplest() any {
	switch {
	case len(o.Content) == 0 && len(o.Data) == 0 && o.Text == "":
		return nil
	case len(o.Content) == 0 && len(o.Data) == 0:
		return o.Text
	case len(o.Content) == 0 && o.Text == "":
		return o.Data
	}
	return o
}

// looked returns whether the provider can view media of a type within a result.
func looked(mimeType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}, mimeType)
}

// kind returns the type of content that media of a MIME type are.
func kind(mimeType string) string {
	if strings.HasPrefix(mimeType, "image/") {
		return "image"
	}
	return "file"
}
