//go:build clients

package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/tool"
)

// given is a document that a client has written.
type given struct {
	Dialect, Kind, Name, Document string
	Want                          content
}

// content is the content of a document, by the client's own attributes. Fields that a kind of document does not have
// are empty.
type content struct {
	Content   string     `json:"content"`
	Calls     []call     `json:"calls"`
	Items     []item     `json:"items"`
	Finish    string     `json:"finish"`
	Outputs   []output   `json:"outputs"`
	Named     []output   `json:"named"`
	Approvals []approval `json:"approvals"`
	Tools     []string   `json:"tools"`
}

type call struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	Incomplete bool            `json:"incomplete"`
	Origin     json.RawMessage `json:"origin"`
}

type item struct {
	Type    string `json:"type"`
	Waiting bool   `json:"waiting"`
}

type output struct {
	ID      string `json:"id"`
	Success bool   `json:"success"`
}

type approval struct {
	ID      string `json:"id"`
	Approve bool   `json:"approve"`
}

// refusals are what the dialects refuse although the clients' types have it, by a part of the error, with
// the reason.
var refusals = map[string]string{
	"function_call: is deprecated and not read":                      "it answers functions, which are not offered; losing a call in silence would be worse",
	`role: is "function"; want "tool"`:                               "likewise",
	"name: is missing, and no call is open":                          "likewise",
	"without a name":                                                 "a call without a name cannot be run",
	"the provider answered with an error":                            "it is an error",
	"the provider answered that the response failed":                 "likewise",
	`is "in_progress"; answer when the output is complete`:           "there is no result yet",
	"willContinue: says that there is more to come":                  "likewise",
	"resultType: is ":                                                "the server wants to know more first, which the program has to see to",
	"a file that the provider keeps":                                 "only the provider can read it",
	"call_id: is missing":                                            "nothing else says which call is answered",
	"image_url: is missing; want a URL":                              "the part has no image",
	"file_url: is missing; want a URL":                               "the part has no file",
	"functionResponse.parts[0]: has neither inlineData nor fileData": "the part has no media",
}

// TestWhatTheyWriteIsRead: everything that the clients' types know is read, with all text, calls, items and results
// that are in it, or is refused for one of the reasons above.
func TestWhatTheyWriteIsRead(t *testing.T) {
	t.Parallel()
	read, refused := map[string]int{}, map[string]int{}
	for _, line := range script(t, "compose.py", &bytes.Buffer{}) {
		var one given
		require.NoError(t, json.Unmarshal(line, &one))
		found, err := one.read()
		if err != nil {
			reason := reasonFor(err)
			refused[reason]++
			assert.NotEmpty(t, reason, "%s: %v\n%s", one.Name, err, one.Document)
			continue
		}
		read[one.Dialect+" "+one.Kind]++
		assert.Equal(t, one.Want.comparable(t), found.comparable(t), "%s\n%s", one.Name, one.Document)
	}
	for part := range refusals {
		assert.Positive(t, refused[part], "nothing is refused with %q", part)
	}
	for _, dialect := range dialects.Names() {
		for _, kind := range []string{"response", "stream", "answers"} {
			assert.Greater(t, read[dialect+" "+kind], 20, "%s %s", dialect, kind)
		}
	}
	t.Logf("read: %v\nrefused: %v", read, refused)
}

// reasonFor returns the part of an error for which there is a reason, or "".
func reasonFor(err error) string {
	for part := range refusals {
		if strings.Contains(err.Error(), part) {
			return part
		}
	}
	return ""
}

// comparable returns content in which equal arguments are equal, and ids that were made here are gone.
func (c content) comparable(t *testing.T) string {
	t.Helper()
	for i := range c.Calls {
		one := &c.Calls[i]
		if strings.HasPrefix(one.ID, "gemini-call-") {
			one.ID = ""
		}
		one.Arguments, one.Origin = canonical(one.Arguments), canonical(one.Origin)
	}
	text, err := json.MarshalIndent(c, "", " ")
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), ": null", ": []")
}

// canonical returns JSON, or JSON within a string, in one form; other text as a string.
func canonical(value json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) == nil && json.Valid([]byte(text)) {
		value = json.RawMessage(text)
	}
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return value
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return value
	}
	return encoded
}

// read has the dialect read the document.
func (g *given) read() (content, error) {
	dialect, err := known.ByName(g.Dialect)
	if err != nil {
		return content{}, err
	}
	switch document := []byte(g.Document); g.Kind {
	case "response", "stream":
		response, err := known.ReadIn(dialect, document)
		if detected, ok := known.Detect(document); err == nil && (!ok || detected.Name() != g.Dialect) {
			return content{}, errors.New("the dialect is not detected")
		}
		return responded(response), err
	case "answers":
		answers, err := dialect.Answers(document)
		return answered(answers), err
	case "answer":
		id, result, err := mcp.Answer(document)
		return content{Outputs: []output{{id, result.Success}}}, err
	case "offered":
		offered, _, err := mcp.Offered(document)
		var names []string
		for _, definition := range offered {
			names = append(names, definition.Name)
		}
		return content{Tools: names}, err
	}
	return content{}, fmt.Errorf("there is no kind of document %q", g.Kind)
}

func responded(response tool.ChatResponse) content {
	found := content{Content: response.Content, Finish: string(response.FinishReason)}
	for _, one := range response.ToolCalls {
		arguments, _ := json.Marshal(cmp.Or(one.Function.Arguments, "{}"))
		found.Calls = append(found.Calls, call{one.ID, one.Type, one.Function.Name, arguments, one.Incomplete, json.RawMessage(cmp.Or(one.Origin, "{}"))})
	}
	for _, one := range response.ProviderItems {
		found.Items = append(found.Items, item{one.Type, one.Waiting})
	}
	return found
}

func answered(answers dialects.Answers) (found content) {
	for _, one := range answers.Outputs {
		found.Outputs = append(found.Outputs, output{one.CallID, one.Result.Success})
	}
	for _, one := range answers.Named {
		found.Named = append(found.Named, output{one.Tool, one.Result.Success})
	}
	for _, one := range answers.Approvals {
		found.Approvals = append(found.Approvals, approval{one.CallID, one.Approve})
	}
	return found
}
