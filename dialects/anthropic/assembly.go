package anthropic

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// assembly is a partly received message.
type assembly struct {
	wire.Output
	stop  string
	why   details // of stop
	usage usage
	parts []*part // in the order in which they were first mentioned
	at    map[int]*part
	calls int
	taken map[string]bool // ids
	began bool            // message_start came
	done  bool            // nothing more comes
}

func newAssembly(r wire.Reader) *assembly {
	return &assembly{Output: wire.Output{Reader: r}, at: map[int]*part{}, taken: map[string]bool{}}
}

// part is a partly received block.
type part struct {
	index   int
	kind    string // the block's type; empty until it is known
	call    tool.Call
	filled  bool            // whether the call's id was made here
	number  int             // of the call, as they began
	input   json.RawMessage // with which the block began
	written json.RawMessage // the whole of a block of the provider's own tools, as it began
	text    strings.Builder // of a text
	pieces  strings.Builder // of a call's arguments
	halves  pieces.Halves   // of either
	stopped bool
	passed  bool // whether the call has been passed on
}

// end closes a block and returns the rest of its last piece. It passes on a block of the provider's own tools.
func (a *assembly) end(p *part) (rest string, err error) {
	if p.stopped {
		return "", nil
	}
	p.stopped = true
	rest = p.halves.End()
	switch {
	case p.written != nil:
		p.pieces.WriteString(rest)
		return "", a.Item(tool.ProviderItem{Type: p.kind, ID: p.call.ID, Data: p.provided()})
	case p.kind == callBlock:
		p.pieces.WriteString(rest)
	default:
		p.text.WriteString(rest)
	}
	return rest, nil
}

// provided returns a block of the provider's own tools. An input that came in pieces replaces the one that it
// began with, unless the pieces are incomplete.
func (p *part) provided() json.RawMessage {
	pieces := p.pieces.String()
	if !json.Valid([]byte(pieces)) {
		return p.written
	}
	whole, err := tool.ParseArguments(string(p.written))
	if err != nil {
		return p.written
	}
	text, _ := whole.With("input", json.RawMessage(pieces)).MarshalJSON() // which never fails
	return text
}

const (
	textBlock     = "text"
	resultBlock   = "tool_result"
	callBlock     = "tool_use"
	thinkingBlock = "thinking"
	redactedBlock = "redacted_thinking"
)

func (a *assembly) begin(m message) {
	a.ID, a.Model, a.stop = m.ID, m.Model, m.StopReason
	a.explain(m.Details)
	wire.Counts(m.Usage, &a.usage)
}

// explain takes the details of a stop reason, which are only for people. It ignores malformed ones.
func (a *assembly) explain(written json.RawMessage) {
	var why details
	if !wire.Absent(written) && decode.Unmarshal(written, &why) == nil {
		a.why = why
	}
}

// remarks returns the response's irregularities, given its calls and those whose missing ids were filled in.
func (a *assembly) remarks(calls, filled []tool.Call) []string {
	remarks := append(pieces.Filled(filled), pieces.Repeated(calls)...)
	if a.stop == "pause_turn" {
		remarks = append(remarks,
			"the provider paused a long turn (pause_turn): send the response back as it is, with these results, and the model "+
				"goes on")
	}
	if a.why == (details{}) {
		return remarks
	}
	return append(remarks, pieces.Reason("ended the response", cmp.Or(a.why.Category, a.stop), a.why.Explanation))
}

// maxBlocks limits the memory for a message of many empty blocks.
const maxBlocks = 16_384

// part returns the block with that index, which may be new.
func (a *assembly) part(index int) (*part, error) {
	if p := a.at[index]; p != nil {
		return p, nil
	}
	if len(a.parts) == maxBlocks {
		return nil, a.Fail("index", "the message has more than %d blocks", maxBlocks)
	}
	a.at[index] = &part{index: index}
	a.parts = append(a.parts, a.at[index])
	return a.at[index], nil
}

// start takes the beginning of a block, or all of it: first is decoded, and written is its JSON.
func (a *assembly) start(r wire.Reader, p *part, first block, written json.RawMessage) error {
	if p.kind != "" {
		return r.Fail("", "block %d begins twice", p.index)
	}
	if first.Type == "" {
		return r.Fail("", "has no type")
	}
	p.kind = first.Type
	if p.text.Len() > 0 && p.kind != textBlock || p.pieces.Len() > 0 && p.kind == textBlock {
		return r.Fail("type", "block %d is a %s, but received something else before", p.index, tool.Shown(p.kind, 64))
	}
	switch p.kind {
	case textBlock:
		p.text.WriteString(p.halves.Add(first.Text))
	case callBlock:
		return a.startCall(r, p, first)
	}
	if !first.isRead() {
		p.written, p.call.ID = written, first.ID
	}
	return nil
}

func (a *assembly) startCall(r wire.Reader, p *part, first block) error {
	if first.Name == "" {
		return r.Fail("name", "is missing; a tool_use block names its tool")
	}
	if a.calls == wire.MaxCalls {
		return r.Fail("", "the message has more than %d calls", wire.MaxCalls)
	}
	if p.filled = first.ID == ""; p.filled {
		first.ID = pieces.Free(a.taken, p.index)
	}
	a.taken[first.ID] = true
	origin, err := wire.Origin(r, wire.Member("caller", first.Caller), wire.Member("toolset_name", first.Toolset))
	if err != nil {
		return err
	}
	p.call = tool.Call{ID: first.ID, Type: tool.FunctionCall, Function: tool.Function{Name: first.Name}, Origin: origin}
	p.number, p.input = a.calls, first.Input
	a.calls++
	return r.Bounded("input", len(first.Input))
}

// arguments returns what the model wrote. Some servers send all arguments with the beginning of the block.
func (p *part) arguments() string {
	switch {
	case p.pieces.Len() > 0:
		return p.pieces.String()
	case !wire.Absent(p.input):
		return string(p.input)
	}
	return "{}"
}

// certain returns whether a call is known to be complete: incomplete pieces are not JSON.
func (p *part) certain() bool { return p.pieces.Len() > 0 && json.Valid([]byte(p.pieces.String())) }

// whole returns the call of a part. cut is the one that may be truncated, or nil.
func (p *part) whole(cut *part) tool.Call {
	call := p.call
	call.Function.Arguments, call.Incomplete = p.arguments(), p == cut
	return call
}

func (a *assembly) sorted() []*part {
	return slices.SortedFunc(slices.Values(a.parts), func(a, b *part) int { return a.index - b.index })
}

// cut returns the call that may be truncated, or nil: the last block of a message that stopped early.
func (a *assembly) cut() *part {
	parts := a.sorted()
	if len(parts) == 0 || !finishReason(a.stop).WasCut() {
		return nil
	}
	if last := parts[len(parts)-1]; last.kind == callBlock && !last.certain() {
		return last
	}
	return nil
}

// Response returns the texts and the calls, in the order of the blocks. Before the end, it leaves out calls
// that may be incomplete.
func (a *assembly) Response() tool.ChatResponse {
	response := tool.ChatResponse{
		ID: a.ID, Model: a.Model, ToolCalls: []tool.Call{},
		FinishReason: finishReason(a.stop), Usage: a.usage.total(),
		ProviderItems: a.Items(),
	}
	var content strings.Builder
	var filled []tool.Call
	cut := a.cut()
	for _, p := range a.sorted() {
		content.WriteString(p.text.String())
		if p.kind == callBlock && p.stopped && (a.done || p.certain()) {
			response.ToolCalls = append(response.ToolCalls, p.whole(cut))
			if p.filled {
				filled = append(filled, p.call)
			}
		}
	}
	response.Content, response.Remarks = content.String(), a.remarks(response.ToolCalls, filled)
	return response
}
