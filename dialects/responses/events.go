package responses

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// EventsOptions identify the response that [Events] write. The zero value is valid.
type EventsOptions struct {
	// ResponseID is the id of the response. Empty: it is derived from the id of the batch, and for a resumed
	// batch also from the time, since that is another response.
	ResponseID string
	// PreviousResponseID is the id of the response that this one continues; empty for none.
	PreviousResponseID string
	Model              string // empty to name no model
	// ServerLabel names the server that runs the tools. Empty: "caisson".
	ServerLabel string
}

// Events map the events of a batch, as an executor streams them, to the server-sent events with which
// the API streams a response; see the package documentation. One Events value writes one response, from
// batch_started or batch_resumed to batch_paused or batch_finished. It is for one goroutine, and holds
// all items, since the last event repeats them.
type Events struct {
	options  EventsOptions
	phase    phase
	resumed  bool
	sequence int
	response streamed
	calls    map[string]*batchCall
	idents   map[string]int   // the number of calls with an id
	out      []dialects.Event // the API's events for the current event
	failed   error            // why an event could not be written
}

type phase int

const (
	ahead phase = iota
	within
	over
)

// NewEvents returns Events for one response.
func NewEvents(options EventsOptions) *Events {
	options.ServerLabel = cmp.Or(options.ServerLabel, "caisson")
	return &Events{options: options, calls: map[string]*batchCall{}, idents: map[string]int{}}
}

// Map returns the API's events for an event, ready for [dialects.WriteEvent]. There may be none: hidden
// calls, and calls that tools made, have none. Events in an order that package tool does not allow are a
// [*dialects.Error]; after it, only [Events.Fail] can be written.
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

// Fail returns the event that ends a response early, such as one whose batch was refused. The message is
// for the client. After the end it returns none.
func (e *Events) Fail(message string) []dialects.Event {
	e.out = nil
	switch e.phase {
	case over:
		return nil
	case ahead:
		e.send("error", &errorEvent{Code: "server_error", Message: message})
	default:
		e.response.Status, e.response.Error = "failed", &failureObject{"server_error", message}
		e.send("response.failed", &responseEvent{Response: &e.response})
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
		if c.running != nil {
			return e.wrong(event, "is about a call that is already running")
		}
		if !c.planned.Client {
			e.run(c)
		}
		return nil
	case tool.CallOutput:
		return e.output(c, event)
	case tool.CallFinished:
		return e.finished(c, event)
	}
	return e.wrong(event, "has an unknown type")
}

func (e *Events) wrong(event *tool.Event, what string) error {
	return reader("events").Fail(event.CallID, "the event %q %s", tool.Shown(string(event.Type), 64), what)
}

func (e *Events) begin(event *tool.Event) error {
	if e.phase != ahead {
		return e.wrong(event, "begins a second response; use new Events for each")
	}
	e.phase, e.resumed = within, event.Type == tool.BatchResumed
	for i := range event.Calls {
		p := &event.Calls[i]
		e.calls[p.CallID] = &batchCall{planned: *p}
		e.idents[p.ID]++
		if p.CallID != p.ID {
			e.idents[p.CallID]++
		}
	}
	e.response = e.created(event)
	e.send("response.created", &responseEvent{Response: &e.response})
	e.send("response.in_progress", &responseEvent{Response: &e.response})
	return nil
}

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

// seconds returns a time in the API's form; the zero time is 0.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// end writes the whole response. The API ends one with pending calls in the same way.
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
	e.send("response.completed", &responseEvent{Response: &e.response})
	return nil
}

// send adds an event to the result of Map.
func (e *Events) send(name string, event interface {
	start(name string, sequence int)
}) {
	event.start(name, e.sequence)
	e.sequence++
	data, err := wire.Encode(event)
	if err != nil {
		e.failed = reader("events").Within(name, err)
		return
	}
	e.out = append(e.out, dialects.Event{Name: name, Data: data})
}

// step adds an event about an item.
func (e *Events) step(name string, at place, step itemStep) {
	step.place = at
	e.send("response."+name, &step)
}

// add appends an item to the response and returns its place.
func (e *Events) add(id string, item any) place {
	at := place{id, len(e.response.Output)}
	e.send("response.output_item.added", &itemEvent{OutputIndex: at.OutputIndex, Item: item})
	e.response.Output = append(e.response.Output, item)
	return at
}

// done replaces an item with its final state.
func (e *Events) done(at place, item any) {
	e.send("response.output_item.done", &itemEvent{OutputIndex: at.OutputIndex, Item: item})
	e.response.Output[at.OutputIndex] = item
}

type batchCall struct {
	planned   tool.Planned
	announced bool    // the client has been asked for an answer
	running   running // its item; nil before it has started
	message   *message
	ended     bool
}

// ident returns the id by which the client answers a call: ours if the provider's is ambiguous.
func (e *Events) ident(c *batchCall) string {
	if id := c.planned.ID; id != "" && e.idents[id] == 1 {
		return id
	}
	return c.planned.CallID
}

// waiting writes the request for an output or an approval.
func (e *Events) waiting(c *batchCall, event *tool.Event) error {
	if event.Action == nil {
		return e.wrong(event, "has no action")
	}
	if c.announced || c.running != nil {
		return e.wrong(event, "is about a call that is already waiting or running")
	}
	c.announced = true
	if event.Action.Type == tool.NeedsApproval {
		return e.asks(c, event)
	}
	e.announce(c, event.Action)
	return nil
}

// asks writes a request for approval. Its id encodes the call and the fingerprint, since an answer holds only the id.
func (e *Events) asks(c *batchCall, event *tool.Event) error {
	id := requestID(c.planned.CallID, event.Action.Fingerprint)
	if call, fingerprint := requested(id); call != c.planned.CallID || fingerprint != event.Action.Fingerprint {
		return e.wrong(event, "asks for approval of a call that an id cannot encode")
	}
	item := callItem{ID: id, Type: approvalRequest, Arguments: new(wanted(event.Action)), Name: event.Action.Tool,
		ServerLabel: e.options.ServerLabel}
	e.done(e.add(item.ID, item), item)
	return nil
}

// wanted returns the arguments that a call is to run with.
func wanted(action *tool.Action) string {
	switch written := action.Call.Function.Arguments; {
	case len(action.Arguments) > 0:
		return string(action.Arguments)
	case strings.TrimSpace(written) != "":
		return written
	}
	return "{}"
}

// announce writes a call for the client. A custom tool's input is the model's own text, unchanged.
func (e *Events) announce(c *batchCall, action *tool.Action) {
	item := callItem{Status: "in_progress", CallID: e.ident(c), Name: action.Tool}
	switch action.Call.Type {
	case tool.CustomCall:
		item.ID, item.Type, item.Status, item.Input = prefixCustom+c.planned.CallID, customCall, "", new(string)
		at := e.add(item.ID, item)
		if item.Input = &action.Call.Function.Arguments; *item.Input != "" {
			e.step("custom_tool_call_input.delta", at, itemStep{Delta: item.Input})
		}
		e.step("custom_tool_call_input.done", at, itemStep{Input: item.Input})
		e.done(at, item)
	case tool.LocalShellCall:
		// Some clients require an environment.
		command := withMember(string(shellAction(wanted(action))), "env", "{}")
		item.ID, item.Type, item.Name, item.Action = prefixShell+c.planned.CallID, localShellCall, "", command
		at := e.add(item.ID, item)
		item.Status = "completed"
		e.done(at, item)
	default:
		item.ID, item.Type, item.Arguments = prefixFunction+c.planned.CallID, functionCall, new(string)
		at := e.add(item.ID, item)
		item.Status, item.Arguments = "completed", new(wanted(action))
		e.arguments("function_call", at, item.Arguments)
		e.done(at, item)
	}
}

// arguments writes the arguments of a call as a single delta.
func (e *Events) arguments(kind string, at place, arguments *string) {
	e.step(kind+"_arguments.delta", at, itemStep{Delta: arguments})
	e.step(kind+"_arguments.done", at, itemStep{Arguments: arguments})
}

// output writes an emission of a call, if the API has a form for it.
func (e *Events) output(c *batchCall, event *tool.Event) error {
	if event.Emission == nil {
		return e.wrong(event, "has no emission")
	}
	if c.running == nil {
		return e.wrong(event, "is about a call that is not running")
	}
	c.running.say(e, event.Emission)
	if c.planned.Final && event.Emission.Type == tool.EmitText {
		e.speak(c, event.Emission.Text)
	}
	return nil
}

// finished ends the items of a call. A call for the client that was never announced got its result here;
// one that was announced, in this response or an earlier one, needs nothing more.
func (e *Events) finished(c *batchCall, event *tool.Event) error {
	if event.Record == nil {
		return e.wrong(event, "has no record")
	}
	c.ended = true
	if c.running == nil && c.planned.Client && (c.announced || e.resumed) {
		return nil
	}
	if c.running == nil {
		e.run(c)
	}
	c.running.end(e, &event.Record.Result)
	if c.planned.Final {
		e.conclude(c, event.Record)
	}
	return nil
}

// running is the item of a call that is run here.
type running interface {
	// say takes an emission of the call.
	say(e *Events, emission *tool.Emission)
	// end takes the result of the call, and ends the item.
	end(e *Events, result *tool.Result)
}

// run adds the item of a call, by the category of its tool.
func (e *Events) run(c *batchCall) {
	category := c.planned.Category
	if c.planned.Client {
		category = "" // the result came from elsewhere, so nothing was searched
	}
	switch category {
	case "web_search":
		c.running = e.webSearch(&c.planned)
	case "file_search":
		c.running = e.fileSearch(&c.planned)
	case "image_generation":
		c.running = e.image(&c.planned)
	default:
		c.running = e.server(&c.planned)
	}
}
