package responses

import (
	"slices"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// message is the item with the text of a call whose output is for the user.
type message struct {
	at   place
	item spokenItem
	text strings.Builder // of the part that is open
	part int             // its index
}

// speak adds a piece of text to a call's message, which begins with it.
func (e *Events) speak(c *call, text string) {
	if text == "" {
		return
	}
	if c.message == nil {
		c.message = &message{item: spokenItem{
			ID: prefixMessage + c.planned.CallID, Type: messageItem, Status: "in_progress", Role: "assistant", Content: []textPart{},
		}}
		c.message.at = e.add(c.message.item.ID, c.message.item)
		c.message.open(e)
	}
	m := c.message
	m.text.WriteString(text)
	e.send(textDeltaEvent{e.head("output_text.delta"), m.at, m.part, text, []any{}})
}

// conclude says what the output has beyond what the call has said, and ends the message.
func (e *Events) conclude(c *call, record *tool.Record) {
	if record.Result.Success {
		e.remaining(c, record)
	}
	m := c.message
	if m == nil {
		return
	}
	m.close(e)
	m.item.Status = "completed"
	if !record.Result.Success {
		m.item.Status = "incomplete"
	}
	e.done(m.at, m.item)
}

// remaining says the rest of an output. An output that does not go on from what was said, such as
// one whose pieces were lost, is a part of its own.
func (e *Events) remaining(c *call, record *tool.Record) {
	output := record.Result.Output
	if c.message == nil {
		e.speak(c, output)
		return
	}
	said := c.message.text.String()
	if rest, goesOn := strings.CutPrefix(output, said); goesOn {
		e.speak(c, rest)
		return
	}
	if wasSaid(record, said) {
		return
	}
	c.message.close(e)
	c.message.part++
	c.message.open(e)
	e.speak(c, output)
}

// wasSaid returns whether what was said has all of an output: it may have more space at the end, or
// what was cut from the output.
func wasSaid(record *tool.Record, said string) bool {
	isAll := func(cut tool.Cut) bool { return cut.Part == "output" && cut.Bytes <= int64(len(said)) }
	return strings.HasPrefix(said, strings.TrimRight(record.Result.Output, " \t\r\n")) || slices.ContainsFunc(record.Cuts, isAll)
}

// open begins a part.
func (m *message) open(e *Events) {
	m.text.Reset()
	e.send(partEvent{e.head("content_part.added"), m.at, m.part, outputText("")})
}

// close ends the part that is open.
func (m *message) close(e *Events) {
	text := m.text.String()
	e.send(textDoneEvent{e.head("output_text.done"), m.at, m.part, text, []any{}})
	part := outputText(text)
	e.send(partEvent{e.head("content_part.done"), m.at, m.part, part})
	m.item.Content = append(m.item.Content, part)
}

func outputText(text string) textPart {
	return textPart{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}
