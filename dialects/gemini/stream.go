package gemini

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// assembly is a response as far as it has come.
type assembly struct {
	reader  wire.Reader
	id      string
	model   string
	text    strings.Builder
	parts   int
	values  int // in arguments that come in pieces
	calls   []*call
	open    []*call // those that go on, and maybe some that do not any more
	byID    map[string]*call
	known   bool // whether anything came that a response has
	blocked bool
	finish  string
	usage   usage
}

// add takes a document, and returns the pieces that it completes.
func (a *assembly) add(path string, text []byte) ([]tool.StreamResponse, error) {
	var d document
	if err := a.reader.Into(path, text, &d); err != nil {
		return nil, err
	}
	if d.Error != nil {
		return nil, d.Error.as(a.reader, path)
	}
	a.id, a.model = cmp.Or(d.ResponseID, a.id), cmp.Or(d.ModelVersion, a.model)
	if d.UsageMetadata != nil {
		a.usage, a.known = *d.UsageMetadata, true
	}
	if d.PromptFeedback != nil {
		a.blocked, a.known = a.blocked || d.PromptFeedback.BlockReason != "", true
	}
	var pieces []tool.StreamResponse
	err := wire.Each(a.reader, wire.Join(path, "candidates"), d.Candidates, maxParts, func(path string, _ int, c *candidate) error {
		more, err := a.candidate(path, c)
		pieces = append(pieces, more...)
		return err
	})
	return pieces, err
}

// maxParts bounds what is held of a response that has many parts and nothing in them.
const maxParts = 65_536

// candidate reads the first of the candidates, and passes over the others.
func (a *assembly) candidate(path string, c *candidate) ([]tool.StreamResponse, error) {
	if c.Index != 0 {
		return nil, nil
	}
	a.known = true
	if c.FinishReason != "" {
		a.finish = c.FinishReason
	}
	var pieces []tool.StreamResponse
	err := wire.Each(a.reader, path+".content.parts", c.Content.Parts, maxParts, func(path string, _ int, p *part) error {
		if a.parts++; a.parts > maxParts {
			return a.reader.Fail(path, "the response has more than %d parts", maxParts)
		}
		piece, err := a.part(path, *p)
		if err == nil && piece != nil && p.FunctionCall == nil && p.ThoughtSignature != "" {
			*piece, err = wire.WithData(*piece, false, map[string]string{"thought_signature": p.ThoughtSignature})
		}
		if piece != nil {
			pieces = append(pieces, *piece)
		}
		return err
	})
	return pieces, err
}

// part returns the piece that a part is, or nil.
func (a *assembly) part(path string, p part) (*tool.StreamResponse, error) {
	var piece tool.StreamResponse
	switch {
	case p.FunctionCall != nil:
		whole, err := a.call(path+".functionCall", *p.FunctionCall, p.ThoughtSignature)
		if err != nil || whole == nil {
			return nil, err
		}
		piece = wire.Called(a.id, whole.call)
	case p.Text == "" && p.ThoughtSignature == "":
		return nil, nil
	case p.Text == "" || p.Thought: // a signature may have nothing else to stand beside
		piece = wire.Piece(a.id, tool.ResponseThinking, p.Text)
	default:
		a.text.WriteString(p.Text)
		piece = wire.Piece(a.id, tool.ResponseAnswer, p.Text)
	}
	return &piece, nil
}

// check says what is wrong with what is said to be a whole response.
func (a *assembly) check() error {
	if !a.known {
		return a.reader.Fail("", "is not a response of generateContent: it has neither candidates nor promptFeedback nor usageMetadata")
	}
	if open := a.last(); open != nil && !pieces.WasCut(finishReason(a.finish, true)) {
		return a.reader.Fail("", "ended within the arguments of the call of %q (finish reason %q)",
			tool.Shown(open.call.Function.Name, 64), tool.Shown(a.finish, 64))
	}
	return nil
}

// Response returns the text and the calls that are whole.
func (a *assembly) Response() tool.ChatResponse {
	response := tool.ChatResponse{
		ID: a.id, Model: a.model, Content: a.text.String(), ToolCalls: []tool.Call{},
		FinishReason: finishReason(a.finish, len(a.calls) > 0), Usage: a.usage.total(),
	}
	if a.finish == "" && a.blocked {
		response.FinishReason = tool.FinishContentFilter
	}
	for _, c := range a.calls {
		if !c.open {
			response.ToolCalls = append(response.ToolCalls, c.call)
		}
	}
	return response
}

// Stream reads the events of streamGenerateContent?alt=sse, each of which is a response in
// itself.
func (dialect) Stream() dialects.Stream {
	r := reader("stream")
	return wire.NewStream(r, &stream{assembly{reader: r}})
}

type stream struct{ assembly }

// Take takes one event. Its name says nothing.
func (s *stream) Take(_ string, data []byte) ([]tool.StreamResponse, error) { return s.add("", data) }

// Finish checks that the response has ended. A stream without a finish reason broke off.
func (s *stream) Finish() ([]tool.StreamResponse, error) {
	if s.finish == "" && !s.blocked {
		return nil, s.reader.Fail("", "broke off: no finishReason came")
	}
	return nil, s.check()
}

// call is a call as far as it has come.
type call struct {
	call  tool.Call
	open  bool
	tree  node // the arguments of a call that comes in pieces
	bytes int  // of the pieces
}

// madeID is what the id of a call without one begins with; the call's position follows.
const madeID = "gemini-call-"

// position returns which call of its response a made id is of.
func position(id string) (int, bool) {
	digits, made := strings.CutPrefix(id, madeID)
	n, err := strconv.Atoi(digits)
	return n, made && err == nil && n >= 0
}

// call takes a functionCall and the signature beside it, and returns the call if it is whole now.
func (a *assembly) call(path string, f functionCall, signature string) (*call, error) {
	c := a.continued(f)
	if c == nil && f.Name == "" {
		if wire.Absent(f.Args) && wire.Absent(f.PartialArgs) {
			return nil, nil // the end of a call that has ended
		}
		return nil, a.reader.Fail(path+".name", "is missing, and no call goes on; a functionCall names its function")
	}
	if c == nil {
		var err error
		if c, err = a.begin(path, f); err != nil {
			return nil, err
		}
		if !f.WillContinue && wire.Absent(f.PartialArgs) {
			c.open, c.call.Signature = false, signature
			return c, a.whole(path+".args", c, f.Args)
		}
	}
	if signature != "" {
		c.call.Signature = signature
	}
	if args := string(f.Args); !wire.Absent(f.Args) && args != "{}" {
		return nil, a.reader.Fail(path+".args", "comes together with pieces of the arguments; want one or the other")
	}
	if err := wire.Each(a.reader, path+".partialArgs", f.PartialArgs, maxValues, func(path string, _ int, element *json.RawMessage) error {
		return a.piece(path, c, *element)
	}); err != nil || f.WillContinue {
		return nil, err
	}
	return c, a.close(path, c)
}

// continued returns the open call that a functionCall goes on with, or nil: the one with its id,
// or the last, unless that is another function's.
func (a *assembly) continued(f functionCall) *call {
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

func (a *assembly) begin(path string, f functionCall) (*call, error) {
	if len(a.calls) == dialects.MaxCalls {
		return nil, a.reader.Fail(path, "the response has more than %d calls", dialects.MaxCalls)
	}
	id := f.ID
	if id == "" {
		id = fmt.Sprint(madeID, len(a.calls))
	}
	c := &call{open: true, call: tool.Call{ID: id, Type: "function", Function: tool.Function{Name: f.Name}}}
	a.calls = append(a.calls, c)
	if f.WillContinue || !wire.Absent(f.PartialArgs) {
		a.open = append(a.open, c)
		if a.byID == nil {
			a.byID = map[string]*call{}
		}
		a.byID[id] = c
	}
	return c, nil
}

// whole takes arguments that come at once, as they are written.
func (a *assembly) whole(path string, c *call, args json.RawMessage) error {
	if len(args) > dialects.MaxArguments {
		return a.reader.Fail(path, "has %d bytes, more than %d", len(args), dialects.MaxArguments)
	}
	c.call.Function.Arguments = "{}"
	if !wire.Absent(args) {
		c.call.Function.Arguments = string(args)
	}
	return nil
}

// piece takes one of the partialArgs.
func (a *assembly) piece(path string, c *call, element json.RawMessage) error {
	if c.bytes += len(element); c.bytes > dialects.MaxArguments {
		return a.reader.Fail(path, "the arguments have more than %d bytes", dialects.MaxArguments)
	}
	var p partialArg
	if err := a.reader.Into(path, element, &p); err != nil {
		return err
	}
	steps, err := parsePath(p.JSONPath)
	if err != nil {
		return a.reader.Fail(path+".jsonPath", "%s", err)
	}
	if err := c.tree.put(steps, p, &a.values); err != nil {
		return a.reader.Fail(path, "%s", err)
	}
	return nil
}

func (a *assembly) close(path string, c *call) error {
	c.open = false
	if len(c.tree.members) == 0 {
		return a.whole(path, c, nil)
	}
	return a.whole(path, c, c.tree.value().Append(nil))
}
