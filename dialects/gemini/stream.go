package gemini

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// assembly is a partly received response.
type assembly struct {
	wire.Output
	parts   int
	values  int // of all arguments that come in pieces
	calls   []*call
	open    []*call // calls to be continued, and maybe some that have ended
	byID    map[string]*call
	known   bool // whether any document had members of a response
	blocked feedback
	finish  string
	message string         // finishMessage
	unread  map[int64]bool // other candidates with calls
	usage   usage
}

func newAssembly(r wire.Reader) *assembly {
	return &assembly{Output: wire.Output{Reader: r}, byID: map[string]*call{}, unread: map[int64]bool{}}
}

// add takes a document.
func (a *assembly) add(r wire.Reader, text json.RawMessage) error {
	var d document
	if err := r.Into("", text, &d); err != nil {
		return err
	}
	if d.Error != nil {
		return r.In("error").Answered(d.Error.Status, d.Error.Message)
	}
	a.ID, a.Model = cmp.Or(d.ResponseID, a.ID), cmp.Or(d.ModelVersion, a.Model)
	if !wire.Absent(d.UsageMetadata) {
		var counts usage
		wire.Counts(d.UsageMetadata, &counts)
		a.usage, a.known = counts, true
	}
	if d.PromptFeedback != nil {
		a.known = true
		if d.PromptFeedback.BlockReason != "" {
			a.blocked = *d.PromptFeedback
		}
	}
	position, found := int64(-1), false
	return wire.Each(r, "candidates", d.Candidates, maxParts, func(r wire.Reader, c *candidate) error {
		position++
		if c.Index != 0 || found {
			a.passOver(r, c, cmp.Or(int64(c.Index), position))
			return nil
		}
		found = true
		return a.candidate(r, c)
	})
}

// maxParts bounds the memory for a response of many empty parts.
const maxParts = 65_536

// candidate takes the first of the candidates.
func (a *assembly) candidate(r wire.Reader, c *candidate) error {
	a.known = true
	a.finish, a.message = cmp.Or(c.FinishReason, a.finish), cmp.Or(c.FinishMessage, a.message)
	return wire.Each(r, "content.parts", c.Content.Parts, maxParts, func(r wire.Reader, written *json.RawMessage) error {
		if a.parts++; a.parts > maxParts {
			return r.Fail("", "the response has more than %d parts", maxParts)
		}
		var p part
		if err := r.Into("", *written, &p); err != nil {
			return err
		}
		if p.FunctionCall != nil {
			return a.call(r.In("functionCall"), p.FunctionCall, p.ThoughtSignature)
		}
		return a.passage(&p, *written)
	})
}

// passOver takes another candidate and notes whether it has calls. It ignores the candidate's faults.
func (a *assembly) passOver(r wire.Reader, c *candidate, index int64) {
	_ = wire.Each(r, "content.parts", c.Content.Parts, maxParts, func(_ wire.Reader, p *struct {
		FunctionCall json.RawMessage `json:"functionCall" alias:"function_call"`
	}) error {
		if !wire.Absent(p.FunctionCall) {
			a.unread[index] = true
		}
		return nil
	})
}

// remarks returns the response's irregularities.
func (a *assembly) remarks(calls []tool.Call) []string {
	remarks := append(pieces.Unread("candidate", a.unread), pieces.Repeated(calls)...)
	if a.blocked.BlockReason != "" {
		remarks = append(remarks, pieces.Reason("blocked the prompt", a.blocked.BlockReason, a.blocked.BlockMessage))
	}
	if isUsual := a.finish == "" || a.finish == "STOP" || a.finish == "MAX_TOKENS"; !isUsual || a.message != "" {
		remarks = append(remarks, pieces.Reason("ended the response", a.finish, a.message))
	}
	return remarks
}

// passage takes a part that is not a call. Any such part may have a signature, and some have nothing else.
func (a *assembly) passage(p *part, written json.RawMessage) error {
	if item, ok := provided(written); ok {
		if err := a.Item(item); err != nil {
			return err
		}
	}
	kind := tool.ResponseAnswer
	if p.Thought || p.Text == "" {
		kind = tool.ResponseThinking
	}
	if p.ThoughtSignature == "" {
		a.Say(kind, p.Text)
		return nil
	}
	return a.Data(kind, p.Text, map[string]string{"thought_signature": p.ThoughtSignature})
}

// provided returns the item in a part, such as executableCode or toolCall; false for parts without one.
func provided(written json.RawMessage) (tool.ProviderItem, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(written, &members) != nil {
		return tool.ProviderItem{}, false
	}
	// Members that are read, or that only describe other members, as metadata do.
	about := []string{"text", "thought", "thoughtSignature", "functionCall", "mediaResolution", "mediaProcessing"}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		kind := camel(name)
		if wire.Absent(members[name]) || slices.Contains(about, kind) || strings.HasSuffix(kind, "Metadata") {
			continue
		}
		var named struct {
			ID string `json:"id"`
		}
		_ = decode.Unmarshal(members[name], &named) // most kinds have no id
		return tool.ProviderItem{Type: kind, ID: named.ID, Data: written}, true
	}
	return tool.ProviderItem{}, false
}

// camel returns the API's name of a member, which the provider's own clients may write as thought_signature.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

func (a *assembly) check() error {
	if !a.known {
		return a.Fail("",
			"is not a response of generateContent: it has neither candidates nor promptFeedback nor usageMetadata")
	}
	if open := a.last(); open != nil && !finishReason(a.finish, true).WasCut() {
		return a.Fail("", "ended within the arguments of the call of %q (finish reason %q)",
			tool.Shown(open.call.Function.Name, 64), tool.Shown(a.finish, 64))
	}
	return nil
}

// Response returns the text, and the calls that are complete. After the end, it also returns those that are
// not.
func (a *assembly) Response() tool.ChatResponse {
	response := tool.ChatResponse{
		ID: a.ID, Model: a.Model, Content: a.Answer(), ToolCalls: []tool.Call{}, ProviderItems: a.Items(),
		FinishReason: finishReason(a.finish, len(a.calls) > 0), Usage: a.usage.total(),
	}
	if a.finish == "" && a.blocked.BlockReason != "" {
		response.FinishReason = tool.FinishContentFilter
	}
	for _, c := range a.calls {
		if !c.open || c.call.Incomplete {
			response.ToolCalls = append(response.ToolCalls, c.call)
		}
	}
	response.Remarks = a.remarks(response.ToolCalls)
	return response
}

// Stream reads the events of streamGenerateContent?alt=sse, each of which is a response by itself.
func (dialect) Stream() dialects.Stream { return wire.NewStream(newAssembly(reader("stream"))) }

// Take takes one event. Its name has no meaning. Some servers that speak this format end it with [DONE].
func (a *assembly) Take(_ string, data []byte) error {
	if string(data) == "[DONE]" {
		return nil
	}
	return a.add(a.Reader, data)
}

// Finish checks that the response has ended. A stream without a finish reason broke off.
func (a *assembly) Finish() error {
	if a.finish == "" && a.blocked.BlockReason == "" {
		return a.Fail("", "broke off: no finishReason came")
	}
	return a.end()
}

// end checks the response, and passes on the calls in which it was cut off.
func (a *assembly) end() error {
	if err := a.check(); err != nil {
		return err
	}
	for _, c := range a.calls {
		if c.open {
			c.call.Incomplete, c.call.Function.Arguments = true, string(c.assembled())
			a.Call(c.call)
		}
	}
	return nil
}

// call is a partly received call.
type call struct {
	call     tool.Call
	open     bool
	inPieces bool
	tree     node // the arguments of a call that comes in pieces
	bytes    int  // of the pieces
}

// madeID is the prefix of ids for calls without one; the call's position follows.
const madeID = "gemini-call-"

// position returns the position in an id that was made here.
func position(id string) (int, bool) {
	digits, made := strings.CutPrefix(id, madeID)
	n, err := strconv.Atoi(digits)
	return n, made && err == nil && n >= 0
}

// call takes a functionCall and its part's signature, and passes the call on once it is complete.
func (a *assembly) call(r wire.Reader, f *functionCall, signature string) error {
	c := a.continued(f)
	if c == nil {
		if f.Name == "" && wire.Absent(f.Args) && wire.Absent(f.PartialArgs) {
			return nil // the end of a call that has ended
		}
		var err error
		if c, err = a.begin(r, f); err != nil {
			return err
		}
	}
	c.call.Signature = cmp.Or(signature, c.call.Signature)
	arguments := f.Args
	if c.inPieces {
		if !wire.Absent(arguments) && string(arguments) != "{}" {
			return r.Fail("args", "comes together with pieces of the arguments; want one or the other")
		}
		if err := wire.Each(r, "partialArgs", f.PartialArgs, maxValues, func(r wire.Reader, element *json.RawMessage) error {
			return a.piece(r, c, *element)
		}); err != nil || f.WillContinue {
			return err
		}
		arguments = c.assembled()
	}
	if err := r.Bounded("args", len(arguments)); err != nil {
		return err
	}
	if wire.Absent(arguments) {
		arguments = json.RawMessage("{}")
	}
	c.open, c.call.Function.Arguments = false, string(arguments)
	a.Call(c.call)
	return nil
}

func (c *call) assembled() json.RawMessage {
	if len(c.tree.members) == 0 {
		return json.RawMessage("{}")
	}
	return c.tree.appendTo(nil)
}

// continued returns the open call that a functionCall continues: the one with its id, or the last of its function.
func (a *assembly) continued(f *functionCall) *call {
	if f.ID != "" {
		if c := a.byID[f.ID]; c != nil && c.open {
			return c
		}
		return nil
	}
	c := a.last()
	if c != nil && f.Name != "" && (f.Name != c.call.Function.Name || !wire.Absent(f.Args)) {
		return nil
	}
	return c
}

// last returns the open call that began last, or nil.
func (a *assembly) last() *call {
	for n := len(a.open); n > 0; n-- {
		if a.open[n-1].open {
			return a.open[n-1]
		}
		a.open = a.open[:n-1]
	}
	return nil
}

func (a *assembly) begin(r wire.Reader, f *functionCall) (*call, error) {
	if f.Name == "" {
		return nil, r.Fail("name", "is missing, and no call is open; a functionCall names its function")
	}
	if len(a.calls) == wire.MaxCalls {
		return nil, r.Fail("", "the response has more than %d calls", wire.MaxCalls)
	}
	id := cmp.Or(f.ID, madeID+strconv.Itoa(len(a.calls)))
	c := &call{
		call: tool.Call{ID: id, Type: tool.FunctionCall, Function: tool.Function{Name: f.Name}},
		open: true, inPieces: f.WillContinue || !wire.Absent(f.PartialArgs),
	}
	a.calls = append(a.calls, c)
	if c.inPieces {
		a.open = append(a.open, c)
		a.byID[id] = c
	}
	return c, nil
}

func (a *assembly) piece(r wire.Reader, c *call, element json.RawMessage) error {
	c.bytes += len(element)
	if err := r.Bounded("", c.bytes); err != nil {
		return err
	}
	var p partialArg
	if err := r.Into("", element, &p); err != nil {
		return err
	}
	steps, err := parsePath(p.JSONPath)
	if err != nil {
		return r.Fail("jsonPath", "%s", err)
	}
	if err := c.tree.put(steps, p, &a.values); err != nil {
		return r.Fail("", "%s", err)
	}
	return nil
}
