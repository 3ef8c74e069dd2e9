package dialects

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
