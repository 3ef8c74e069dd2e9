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

// Names returns the names of all dialects, in the order in which to show them.
func Names() []string { return []string{OpenAI, Responses, Anthropic, Gemini, MCP} }

// The bounds of what is read from a provider. What exceeds one is refused with an [*Error].
const (
	MaxDocument  = 8 << 20 // bytes of a response, or of all the data of one stream
	MaxCalls     = 4096    // calls in one response, and answers in one document
	MaxParts     = 4096    // parts of what one call came to, in a document of answers
	MaxArguments = 1 << 20 // bytes of one call's arguments
	MaxEvent     = 8 << 20 // bytes of one server-sent event
)

// Dialect is how one provider's API writes tools, calls and results. It is safe for
// concurrent use.
type Dialect interface {
	// Name is what users call the dialect: openai, responses, anthropic, gemini or mcp.
	Name() string
	// Definitions writes tools in the form in which a request offers them: a JSON array, in
	// the order of the definitions, equal byte for byte between calls. The findings say what
	// the provider would refuse or ignore, and what was changed for strict mode.
	Definitions(definitions []tool.Definition, options DefinitionOptions) (json.RawMessage, []Finding, error)
	// Response reads a whole response. It fails with an [*Error]; the document may be anything.
	Response(document []byte) (tool.ChatResponse, error)
	// Results writes what calls came to, in the form in which the next request carries it: a
	// JSON array of messages, blocks, items or parts, one for each record, matched by id.
	Results(records []tool.Record) (json.RawMessage, error)
	// Calls writes calls as the next request shows them before their results: a JSON array with what
	// Results' elements stand behind.
	Calls(calls []tool.Call) (json.RawMessage, error)
	// Answers reads results: what Results writes, and what clients write in its place. What else a
	// conversation has is passed over. It fails with an [*Error]; the document may be anything.
	Answers(document []byte) (Answers, error)
	// Stream reads a streamed response.
	Stream() Stream
}

// Stream puts a streamed response together. It is for one goroutine. What it holds is bounded.
type Stream interface {
	// Event takes one server-sent event: its name, which may be empty, and its data. It returns
	// the pieces that the event completes, in order: text as it comes, calls once they are whole.
	Event(name string, data []byte) ([]tool.StreamResponse, error)
	// End says that nothing more comes. It returns the pieces that were still open, the last of
	// which is complete, or an [*Error] where the stream broke off.
	End() ([]tool.StreamResponse, error)
	// Response returns what has been put together so far; after End, the whole.
	Response() tool.ChatResponse
}

// DefinitionOptions says how tools are offered.
type DefinitionOptions struct {
	// Strict asks the provider to hold the model to the schema, which is made what strict mode
	// requires: objects are closed, optional properties become required and may be null, and keywords
	// that only narrow what is allowed are left out. A tool whose schema strict mode would refuse all
	// the same is offered without.
	Strict bool
}

// Finding is one thing about a definition that a provider would refuse or ignore.
type Finding struct {
	Tool     string   `json:"tool"`
	Path     string   `json:"path"`    // of the schema: "properties.url.format"; empty for the tool itself
	Keyword  string   `json:"keyword"` // such as "format"; "name" for the tool's name
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // what the provider does with it
	Fix      string   `json:"fix"`     // what to write instead, or what was done
	Adapted  bool     `json:"adapted"` // whether the definition was changed, so that the request is taken
}

// Severity says what becomes of a definition.
type Severity string

// The severities.
const (
	Refused  Severity = "refused"  // the provider refuses the request
	Weakened Severity = "weakened" // the provider ignores the keyword, so the model is not held to it
)

// Answers are what a client hands in for calls that wait. None of it is checked against what was
// asked for. A [Dialect] returns no list that is nil.
type Answers struct {
	Outputs []tool.Answer
	// Named are outputs that say which tool they are of, and not which call: Gemini has those for
	// calls without an id. See [Answers.For].
	Named     []NamedOutput
	Approvals []tool.Approval
}

// NamedOutput is what a call came to of which only the name of its tool is known.
type NamedOutput struct {
	Tool   string // as the model called it
	Result tool.Result
}

// For returns the answers with all that are Named among the Outputs, given what is waited for. They
// go to the calls of their tool that wait for an output and have none, in the order of both. One
// that no call is left for has its tool's name for an id, so that whoever takes the answers finds
// it unknown.
func (a Answers) For(pending []tool.Action) Answers {
	if len(a.Named) == 0 {
		return a
	}
	answered := make(map[string]bool, len(a.Outputs))
	for _, output := range a.Outputs {
		answered[output.CallID] = true
	}
	waiting := map[string][]string{} // ids of calls by the name of the tool
	for _, action := range pending {
		if name := action.Call.Function.Name; action.Type == tool.NeedsOutput && !answered[action.CallID] && !answered[action.Call.ID] {
			waiting[name] = append(waiting[name], action.CallID)
		}
	}
	matched := Answers{Outputs: append([]tool.Answer{}, a.Outputs...), Named: []NamedOutput{}, Approvals: a.Approvals}
	for _, named := range a.Named {
		id := named.Tool
		if left := waiting[named.Tool]; len(left) > 0 {
			id, waiting[named.Tool] = left[0], left[1:]
		}
		matched.Outputs = append(matched.Outputs, tool.Answer{CallID: id, Result: named.Result})
	}
	return matched
}

// Error says why a document was not read, or could not be written. Its text is for whoever sent
// the document, and holds nothing of the document but names and short pieces.
type Error struct {
	Op      string // "response", "stream", "definitions", "results", "calls", "answers", "request", "events", "choice"
	Dialect string // as in [Dialect.Name]; empty where it is none's
	Path    string // of what is wrong: "choices[0].message.tool_calls[2].function.arguments"; empty for the whole
	// Message says what is wrong and what is wanted instead, in one sentence.
	Message string
	// Err is the cause, or nil.
	Err error
}

// Error returns what was being done, where it went wrong, and why.
func (e *Error) Error() string {
	parts := []string{strings.TrimSpace(e.Dialect + " " + e.Op), e.Path, e.Message}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
