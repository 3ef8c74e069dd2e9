package dialects

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// The names of the dialects; see [Dialect.Name].
const (
	OpenAI    = "openai"    // Chat Completions
	Responses = "responses" // OpenAI's Responses API
	Anthropic = "anthropic" // Messages
	Gemini    = "gemini"    // generateContent
	MCP       = "mcp"       // Model Context Protocol
)

// Names returns the names of all dialects, in display order.
func Names() []string { return []string{OpenAI, Responses, Anthropic, Gemini, MCP} }

// The limits on input from providers and clients. Input that exceeds one is refused with an [*Error].
const (
	MaxDocument = 8 << 20 // bytes of a response, or of all the data of one stream
	maxEvent    = 8 << 20 // bytes of one server-sent event
)

// Dialect reads and writes the tools, calls and results of one provider's API. It is safe for concurrent
// use.
type Dialect interface {
	// Name is the name that users give: openai, responses, anthropic, gemini or mcp.
	Name() string
	// Definitions writes tools as a request offers them: a JSON array, in the order of the definitions, with
	// the same bytes every time. The findings say what the provider would refuse or ignore, and what was
	// changed for strict mode.
	Definitions(definitions []tool.Definition, options DefinitionOptions) (json.RawMessage, []Finding, error)
	// Response reads a whole response. The document may be anything; errors are an [*Error].
	Response(document []byte) (tool.ChatResponse, error)
	// Results writes the results of calls as the next request carries them: a JSON array of messages,
	// blocks, items or parts, one for each record, matched by id. A model reads each once: the reason of a
	// failure, the output, or the data if there is none, and the content.
	Results(records []tool.Record) (json.RawMessage, error)
	// Calls writes calls as the next request shows them, before their results: a JSON array.
	Calls(calls []tool.Call) (json.RawMessage, error)
	// Answers reads results: what Results writes, and what clients write instead. Of a whole conversation it
	// reads the results after the model's last message and ignores the rest. The document may be anything;
	// errors are an [*Error].
	Answers(document []byte) (Answers, error)
	// Stream reads a streamed response.
	Stream() Stream
}

// Stream assembles a streamed response. It is for one goroutine, and its memory is bounded.
type Stream interface {
	// Event takes one server-sent event: its name, which may be empty, and its data. It returns the pieces
	// that the event completes, in order: text as it arrives, calls once they are complete.
	Event(name string, data []byte) ([]tool.StreamResponse, error)
	// End ends the stream. It returns the pieces that were still open and one that says complete, or an
	// [*Error] if the stream broke off.
	End() ([]tool.StreamResponse, error)
	// Response returns the part of the response that was assembled so far; after End, the whole response.
	Response() tool.ChatResponse
}

// DefinitionOptions says how tools are offered. The zero value is valid.
type DefinitionOptions struct {
	// Strict asks the provider to enforce the schema, which is changed to what strict mode requires: objects
	// are closed, optional properties become required and nullable, and keywords that only narrow what is
	// allowed are removed. If strict mode would refuse a tool's schema all the same, the tool is offered
	// without.
	Strict bool
}

// Finding is something in a definition that a provider would refuse or ignore.
type Finding struct {
	Tool     string   `json:"tool"`
	Path     string   `json:"path"`    // of the schema: "properties.url.format"; empty for the tool itself
	Keyword  string   `json:"keyword"` // such as "format"; "name" for the tool's name
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // what the provider does with it
	Fix      string   `json:"fix"`     // what to write instead; or the change that was made
	Adapted  bool     `json:"adapted"` // whether the definition was changed so that the provider accepts it
}

// Severity is the consequence of a finding.
type Severity string

// The severities.
const (
	Refused  Severity = "refused"  // the provider refuses the request
	Weakened Severity = "weakened" // the provider ignores the keyword, so it is not enforced
)

// Answers are the outputs and approvals that a client submits for waiting calls. They have not been checked
// against the pending actions. A [Dialect] returns no nil lists.
type Answers struct {
	Outputs []tool.Answer
	// Named are outputs that name their tool but not their call: Gemini has those for calls without an id.
	// See [Answers.For].
	Named     []NamedOutput
	Approvals []tool.Approval
	// Earlier are answers that another call follows, in formats that do not say which calls were made in one
	// turn (the Responses API, MCP); nil for none. They may be those of earlier turns: see [Answers.For].
	Earlier *Answers
}

// NamedOutput is the result of a call of which only the tool's name is known.
type NamedOutput struct {
	Tool   string // as the model called it
	Result tool.Result
}

// For returns the answers to pending calls. Each of the Named goes to the first pending call of its tool that
// waits for an output and has none. If there is none, its CallID is the tool's name, which is then refused as an
// unknown call. An Earlier answer is taken if its call is pending and has no other answer.
func (a Answers) For(pending []tool.Action) Answers {
	if len(a.Named) == 0 && a.Earlier == nil {
		return a
	}
	given := make(map[string]bool, len(a.Outputs)+len(a.Approvals))
	for _, output := range a.Outputs {
		given[output.CallID] = true
	}
	for _, approval := range a.Approvals {
		given[approval.CallID] = true
	}
	waiting := map[string][]string{} // ids of calls by the name of the tool
	open := map[string]bool{}        // ids of calls without an answer
	for _, action := range pending {
		if given[action.CallID] || given[action.Call.ID] {
			continue
		}
		open[action.CallID], open[action.Call.ID] = true, true
		if name := action.Call.Function.Name; action.Type == tool.NeedsOutput {
			waiting[name] = append(waiting[name], action.CallID)
		}
	}
	matched := Answers{Outputs: slices.Clone(a.Outputs), Named: []NamedOutput{}, Approvals: slices.Clone(a.Approvals)}
	for _, named := range a.Named {
		id := named.Tool
		if left := waiting[named.Tool]; len(left) > 0 {
			id, waiting[named.Tool] = left[0], left[1:]
		}
		matched.Outputs = append(matched.Outputs, tool.Answer{CallID: id, Result: named.Result})
	}
	if a.Earlier != nil {
		for _, output := range a.Earlier.Outputs {
			if open[output.CallID] {
				matched.Outputs = append(matched.Outputs, output)
			}
		}
		for _, approval := range a.Earlier.Approvals {
			if open[approval.CallID] {
				matched.Approvals = append(matched.Approvals, approval)
			}
		}
	}
	return matched
}

// Error says why a document was not read or could not be written. Its text is for the sender of the
// document, and quotes no more of it than names and short excerpts.
type Error struct {
	Op      string // "response", "stream", "definitions", "results", "calls", "answers", "request", "events", "choice"
	Dialect string // as in [Dialect.Name]; empty for errors that concern no single dialect
	Path    string // of the fault: "choices[0].message.tool_calls[2].function.arguments"; empty for the whole
	// Message names the fault and the expected form, in one sentence.
	Message string
	// Reported is set if the document is a provider's report of an error. Message quotes the report.
	Reported bool
	// Err is the cause, or nil.
	Err error
}

// Error returns the operation, the path and the reason.
func (e *Error) Error() string {
	parts := []string{strings.TrimSpace(e.Dialect + " " + e.Op), e.Path, e.Message}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

func (e *Error) Unwrap() error { return e.Err }
