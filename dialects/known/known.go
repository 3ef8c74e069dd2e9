// Package known has all the dialects, for programs that let their users choose one. Programs that need a
// single one import its package.
package known

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/anthropic"
	"github.com/caisson-run/caisson/dialects/gemini"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/dialects/openai"
	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/tool"
)

// Dialects returns all dialects, in the order of [dialects.Names].
func Dialects() []dialects.Dialect {
	return []dialects.Dialect{openai.New(), responses.New(), anthropic.New(), gemini.New(), mcp.New()}
}

// ByName returns the dialect with that name. The error, a [*dialects.Error], lists the names.
func ByName(name string) (dialects.Dialect, error) {
	for _, d := range Dialects() {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil,
		&dialects.Error{Op: "choice", Message: fmt.Sprintf("there is no dialect %q; want one of %s", tool.Shown(name, 64),
			strings.Join(dialects.Names(), ", "))}
}

// Detect returns the dialect of a response or of the report of an error, whole or as the transcript of a stream:
// server-sent events, or the array that Gemini sends instead. It judges by the outermost members, so the dialect may
// still refuse the document. It returns nil and false if no dialect or more than one fits, and for documents longer
// than [dialects.MaxDocument].
func Detect(document []byte) (dialects.Dialect, bool) {
	name, ok := detectWhole(document)
	if !ok {
		name, _ = detectStream(document)
	}
	dialect, err := ByName(name)
	return dialect, err == nil
}

// Read reads a response in the dialect that [Detect] finds. If the dialect is known, it is returned with an
// error too.
func Read(document []byte) (tool.ChatResponse, dialects.Dialect, error) {
	dialect, ok := Detect(document)
	if !ok && len(document) > dialects.MaxDocument {
		return tool.ChatResponse{}, nil, &dialects.Error{Op: "response",
			Message: fmt.Sprintf("the document has %d bytes, more than %d", len(document), dialects.MaxDocument)}
	}
	if !ok {
		return tool.ChatResponse{}, nil, &dialects.Error{Op: "response",
			Message: "the document is in none of the dialects " + strings.Join(dialects.Names(), ", ")}
	}
	response, err := ReadIn(dialect, document)
	return response, dialect, err
}

// ReadIn reads a response of a dialect: a transcript of a stream, or a whole response if the document begins
// as JSON does. A stream that broke off is an error.
func ReadIn(dialect dialects.Dialect, document []byte) (tool.ChatResponse, error) {
	if !wire.IsTranscript(document) {
		return dialect.Response(document)
	}
	stream := dialect.Stream()
	for event, err := range wire.Transcript(document) {
		if err != nil {
			return tool.ChatResponse{}, err
		}
		if _, err := stream.Event(event.Name, event.Data); err != nil {
			return tool.ChatResponse{}, err
		}
	}
	if _, err := stream.End(); err != nil {
		return tool.ChatResponse{}, err
	}
	return stream.Response(), nil
}
