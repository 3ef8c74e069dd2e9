package dialects

import (
	"encoding/json"

	"github.com/caisson-run/caisson/tool"
)

// Dialect is how one provider's API writes tools, calls and results. It is safe for
// concurrent use.
type Dialect interface {
	// Name is what users call the dialect: openai, responses, anthropic, gemini or mcp.
	Name() string
	// Definitions writes tools in the form in which a request offers them: a JSON array, in
	// the order of the definitions, equal byte for byte between calls. The findings say what
	// the provider would refuse or ignore; where Adapt is set, the definitions are changed so
	// that it does not, as far as that can be done, and the findings say how.
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
	// Strict asks the provider to hold the model to the schema, where it can.
	Strict bool
	// Adapt changes schemas to what the provider takes.
	Adapt bool
}

// Finding is one thing about a definition that a provider would refuse or ignore.
type Finding struct {
	Tool     string   `json:"tool"`
	Path     string   `json:"path"`    // of the schema: "properties.url.format"; empty for the tool itself
	Keyword  string   `json:"keyword"` // such as "format"; "name" for the tool's name
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // what the provider does with it
	Fix      string   `json:"fix"`     // what to write instead, or what Adapt does
	Adapted  bool     `json:"adapted"` // whether it was done
}

// Severity says what becomes of a definition.
type Severity string

// The severities.
const (
	Refused  Severity = "refused"  // the provider refuses the request
	Weakened Severity = "weakened" // the provider ignores the keyword, so the model is not held to it
)
