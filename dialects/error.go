package dialects

import "strings"

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
	var parts []string
	for _, part := range []string{strings.TrimSpace(e.Dialect + " " + e.Op), e.Path, e.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
