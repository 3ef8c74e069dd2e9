package responses

import (
	"fmt"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// EventsOptions say what the response is called that [Events] write. The zero value will do.
type EventsOptions struct {
	// ResponseID is the id of the response. Empty: it is made from that of the batch, and for a
	// batch that was resumed from the time too, since that is another response.
	ResponseID string
	// PreviousResponseID is the id of the response that this one goes on from; empty for none.
	PreviousResponseID string
	Model              string // empty where no model is to be named
	// ServerLabel is what the server is called that runs the tools. Empty: "caisson".
	ServerLabel string
}

// Events write the events of a batch, as a stream of an executor has them, as the server-sent
// events with which the API streams a response; package documentation says what becomes of what.
// One of them writes one response, from batch_started or batch_resumed to batch_paused or
// batch_finished. It is for one goroutine, and holds what the last event repeats.
type Events struct {
	options  EventsOptions
	phase    phase
	resumed  bool
	sequence int
	response streamed
	items    int // how many were added
	calls    map[string]*call
	idents   map[string]int   // how many calls go by an id
	out      []dialects.Event // of the event that is being written
	failed   error            // why an event could not be written
}

// phase says how far a response has come.
type phase int

const (
	ahead phase = iota
	within
	over
)

// NewEvents returns what writes one response.
func NewEvents(options EventsOptions) *Events {
	if options.ServerLabel == "" {
		options.ServerLabel = "caisson"
	}
	return &Events{options: options, calls: map[string]*call{}, idents: map[string]int{}}
}

// Map returns the events that the API has for an event, which may be none: each is one to be
// written with [dialects.WriteEvent]. Hidden calls, and calls that tools made, have none. It fails
// with a [*dialects.Error] where events do not follow each other as package tool says; nothing can
// be written after that but a failure.
func (e *Events) Map(event tool.Event) ([]dialects.Event, error) {
	e.out = nil
	if e.failed == nil {
		if err := e.take(&event); err != nil {
			e.failed = err
		}
	}
	if e.failed != nil {
		return nil, e.failed
	}
	return e.out, nil
}

// Fail returns the event with which a response ends that cannot go on, such as one whose batch was
// refused. The message is for the client. After the end it returns none.
func (e *Events) Fail(message string) []dialects.Event {
	e.out = nil
	switch e.phase {
	case over:
		return nil
	case ahead:
		e.send(errorEvent{head{"error", e.sequence}, "server_error", message, nil})
	default:
		e.response.Status, e.response.Error = "failed", &failureObject{"server_error", message}
		e.send(responseEvent{e.head("failed"), e.response})
	}
	e.phase = over
	return e.out
}

func (e *Events) take(event *tool.Event) error {
	switch event.Type {
	case tool.BatchStarted, tool.BatchResumed:
		return e.begin(event)
	case tool.BatchPaused, tool.BatchFinished:
		return e.end(event)
	}
	if event.Parent != "" || event.Hidden {
		return nil
	}
	if e.phase != within {
		return e.wrong(event, "is not within a batch")
	}
	c := e.calls[event.CallID]
	if c == nil {
		return e.wrong(event, "is about a call that the batch does not have")
	}
	if c.ended {
		return e.wrong(event, "is about a call that has finished")
	}
	switch event.Type {
	case tool.CallWaiting:
		return e.waiting(c, event)
	case tool.CallStarted:
		return e.started(c, event)
	case tool.CallOutput:
		return e.output(c, event)
	case tool.CallFinished:
		return e.finished(c, event)
	}
	return e.wrong(event, "is of a type that is not known")
}

// wrong says what is wrong with an event.
func (e *Events) wrong(event *tool.Event, what string) error {
	return reader("events").Fail(event.CallID, "the event %q %s", tool.Shown(string(event.Type), 64), what)
}

func (e *Events) begin(event *tool.Event) error {
	if e.phase != ahead {
		return e.wrong(event, "begins a second response; each needs Events of its own")
	}
	e.phase, e.resumed = within, event.Type == tool.BatchResumed
	for i := range event.Calls {
		p := &event.Calls[i]
		e.calls[p.CallID] = &call{planned: *p}
		e.idents[p.ID]++
		if p.CallID != p.ID {
			e.idents[p.CallID]++
		}
	}
	e.response = e.created(event)
	e.send(responseEvent{e.head("created"), e.response})
	e.send(responseEvent{e.head("in_progress"), e.response})
	return nil
}

// created returns the response as it is in the beginning.
func (e *Events) created(event *tool.Event) streamed {
	id := e.options.ResponseID
	if id == "" {
		id = "resp_" + event.Batch
		if e.resumed {
			id = fmt.Sprintf("%s_%d", id, event.Time.UnixMilli())
		}
	}
	return streamed{
		ID: id, Object: "response", CreatedAt: seconds(event.Time), Status: "in_progress", Model: e.options.Model,
		Previous: optional(e.options.PreviousResponseID), Output: []any{}, Parallel: true, ToolChoice: "auto", Tools: []any{},
	}
}

// seconds returns a time as the API has it; the zero time is 0.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// optional returns a text that is null where it is empty.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// end writes the whole response. The API ends it in the same way where calls wait.
func (e *Events) end(event *tool.Event) error {
	if e.phase != within {
		return e.wrong(event, "is not within a batch")
	}
	for id, c := range e.calls {
		if c.running != nil && !c.ended {
			return reader("events").Fail(id, "the event %q comes before the call has finished", event.Type)
		}
	}
	at := seconds(event.Time)
	e.phase, e.response.Status, e.response.CompletedAt = over, "completed", &at
	e.send(responseEvent{e.head("completed"), e.response})
	return nil
}

// head returns what the next event begins with.
func (e *Events) head(name string) head {
	h := head{"response." + name, e.sequence}
	e.sequence++
	return h
}

// send adds an event to what Map returns.
func (e *Events) send(payload interface{ name() string }) {
	data, err := wire.Encode(payload)
	if err != nil {
		e.failed = reader("events").Within(payload.name(), err)
		return
	}
	e.out = append(e.out, dialects.Event{Name: payload.name(), Data: data})
}

// add puts an item into the response, and returns where it stands.
func (e *Events) add(id string, item any) place {
	at := place{id, e.items}
	e.items++
	e.send(itemEvent{e.head("output_item.added"), at.OutputIndex, item})
	e.response.Output = append(e.response.Output, item)
	return at
}

// done replaces the item by what has become of it.
func (e *Events) done(at place, item any) {
	e.send(itemEvent{e.head("output_item.done"), at.OutputIndex, item})
	e.response.Output[at.OutputIndex] = item
}
