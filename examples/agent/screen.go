package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

const maxShown = 160 // characters of what a call takes and gives

// screen shows what happens. What the model says goes out, all else is notes. It is for one
// goroutine at a time. Nothing can be done about a screen that fails.
type screen struct {
	out, notes io.Writer
	inLine     bool              // the model's last line has no end yet
	thinking   bool              // it was said that the model thinks
	arguments  map[string]string // of the batch's calls
}

// piece shows a piece of the model's answer.
func (s *screen) piece(piece tool.StreamResponse) {
	switch {
	case piece.ResponseType == tool.ResponseThinking && !s.thinking:
		s.thinking = true
		s.note("the model thinks")
	case piece.ResponseType == tool.ResponseAnswer && piece.Content != "":
		s.inLine = !strings.HasSuffix(piece.Content, "\n")
		_, _ = io.WriteString(s.out, visible(piece.Content))
	}
}

// endLine ends what the model says.
func (s *screen) endLine() {
	if s.inLine {
		_, _ = io.WriteString(s.out, "\n")
	}
	s.inLine, s.thinking = false, false
}

// answer shows what a tool has said in the model's place.
func (s *screen) answer(text string) {
	s.piece(tool.StreamResponse{ResponseType: tool.ResponseAnswer, Content: text})
	s.endLine()
}

// stopped says why an answer is not whole.
func (s *screen) stopped(reason tool.FinishReason) {
	switch reason {
	case tool.FinishLength:
		s.note("the answer was cut: it has the most tokens that the server gives")
	case tool.FinishContentFilter:
		s.note("the answer was cut by the server's content filter")
	}
}

// event shows one step of a batch.
func (s *screen) event(event tool.Event) {
	switch event.Type {
	case tool.BatchStarted, tool.BatchResumed:
		s.arguments = map[string]string{}
		for _, call := range event.Calls {
			s.arguments[call.CallID] = call.Arguments
		}
	case tool.CallStarted:
		s.note("%s %s …", event.Tool, oneLine(s.arguments[event.CallID], maxShown))
	case tool.CallOutput:
		s.emission(event.Tool, event.Emission)
	case tool.CallFinished:
		s.finished(event.Tool, event.Record.Result)
	}
}

// emission shows what a call says before it has ended.
func (s *screen) emission(name string, e *tool.Emission) {
	switch {
	case e.Type == tool.EmitImage:
		image, _ := e.Bytes() // it was checked
		what := "an image"
		if e.Partial {
			what = "a first image"
		}
		s.note("%s: %s (%s, %d bytes)", name, what, e.MIMEType, len(image))
	case e.Fraction != nil:
		s.note("%s: %s %.0f%%", name, oneLine(e.Text, maxShown), *e.Fraction*100)
	default:
		s.note("%s: %s %s", name, oneLine(e.Text, maxShown), oneLine(string(e.Data), maxShown))
	}
}

func (s *screen) finished(name string, result tool.Result) {
	if !result.Success {
		s.note("%s failed (%s): %s", name, result.Kind, oneLine(result.Error, maxShown))
		return
	}
	s.note("%s: %s", name, oneLine(result.Output, maxShown))
	for _, part := range result.Content {
		s.note("%s: with %s %s (%s, %d bytes)", name, part.Type, oneLine(part.Name, maxShown), oneLine(part.MIMEType, maxShown), len(part.Data)+len(part.Text))
	}
}

// note writes a line.
func (s *screen) note(format string, arguments ...any) {
	line := strings.Join(strings.Fields(fmt.Sprintf(format, arguments...)), " ")
	_, _ = fmt.Fprintln(s.notes, "·", visible(line))
}
