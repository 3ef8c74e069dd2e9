package gemini

import (
	"cmp"
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
