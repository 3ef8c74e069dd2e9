package responses

import (
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// call is a call of the batch, and how far its items have come.
type call struct {
	planned   tool.Planned
	announced bool    // it waits for the client
	running   running // its item; nil before it has started
	message   *message
	ended     bool
}

// ident returns the id by which the client answers a call: the provider's, or our own where that
// could mean another call.
func (e *Events) ident(c *call) string {
	if id := c.planned.ID; id != "" && e.idents[id] == 1 {
		return id
	}
	return c.planned.CallID
}

// waiting writes what the client is asked for.
func (e *Events) waiting(c *call, event *tool.Event) error {
	if event.Action == nil {
		return e.wrong(event, "does not say what the call waits for")
	}
	if c.announced || c.running != nil {
		return e.wrong(event, "is about a call that waits or runs already")
	}
	c.announced = true
	if event.Action.Type == tool.NeedsApproval {
		return e.asks(c, event)
	}
	return e.announce(c, event.Action)
}

// asks writes a request for approval. The client's answer says nothing of what was asked but the
// request's id, so that the id must say it all.
func (e *Events) asks(c *call, event *tool.Event) error {
	id := requestID(c.planned.CallID, event.Action.Fingerprint)
	if call, fingerprint := requested(id); call != c.planned.CallID || fingerprint != event.Action.Fingerprint {
		return e.wrong(event, "asks for approval of a call that an id cannot say")
	}
	item := approvalItem{
		ID: id, Type: "mcp_approval_request", Arguments: wanted(event.Action), Name: event.Action.Tool, ServerLabel: e.options.ServerLabel,
	}
	e.done(e.add(item.ID, item), item)
	return nil
}

// wanted returns the arguments that a call is to be run with.
func wanted(action *tool.Action) string {
	if len(action.Arguments) == 0 {
		return object(action.Call.Function.Arguments)
	}
	return string(action.Arguments)
}

// object returns arguments as they stand for a JSON object.
func object(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	return arguments
}

// announce writes a call for the client, which is whole from the beginning.
func (e *Events) announce(c *call, action *tool.Action) error {
	switch action.Call.Type {
	case tool.CustomCall:
		e.announceCustom(c, action)
		return nil
	case tool.LocalShellCall:
		return e.announceShell(c, action)
	}
	item := functionItem{
		ID: prefixFunction + c.planned.CallID, Type: functionCall, Status: "in_progress", CallID: e.ident(c), Name: action.Tool,
	}
	at := e.add(item.ID, item)
	item.Status, item.Arguments = "completed", wanted(action)
	e.send(deltaEvent{e.head("function_call_arguments.delta"), at, item.Arguments})
	e.send(argumentsEvent{e.head("function_call_arguments.done"), at, item.Arguments})
	e.done(at, item)
	return nil
}

// announceCustom writes the text that the model wrote, which nothing is done to.
func (e *Events) announceCustom(c *call, action *tool.Action) {
	item := customItem{ID: prefixCustom + c.planned.CallID, Type: customCall, CallID: e.ident(c), Name: action.Tool}
	at := e.add(item.ID, item)
	item.Input = action.Call.Function.Arguments
	if item.Input != "" {
		e.send(deltaEvent{e.head("custom_tool_call_input.delta"), at, item.Input})
	}
	e.send(inputEvent{e.head("custom_tool_call_input.done"), at, item.Input})
	e.done(at, item)
}

func (e *Events) announceShell(c *call, action *tool.Action) error {
	command, err := fullAction(wanted(action))
	if err != nil {
		return reader("events").Within(c.planned.CallID, err)
	}
	item := shellItem{ID: prefixShell + c.planned.CallID, Type: localShellCall, Status: "in_progress", CallID: e.ident(c), Action: command}
	at := e.add(item.ID, item)
	item.Status = "completed"
	e.done(at, item)
	return nil
}

// started begins the item of a call that is run here.
func (e *Events) started(c *call, event *tool.Event) error {
	if c.running != nil {
		return e.wrong(event, "is about a call that runs already")
	}
	if c.planned.Client {
		return nil
	}
	return e.run(c)
}

// output writes what the API has a form for of what a call says.
func (e *Events) output(c *call, event *tool.Event) error {
	if event.Emission == nil {
		return e.wrong(event, "does not hold what the call says")
	}
	if c.running == nil {
		return e.wrong(event, "is about a call that does not run")
	}
	c.running.say(e, event.Emission)
	if c.planned.Final && event.Emission.Type == tool.EmitText {
		e.speak(c, event.Emission.Text)
	}
	return nil
}

// finished ends the items of a call. A call for the client that came to a result without it was
// answered here; one of an earlier response was announced there.
func (e *Events) finished(c *call, event *tool.Event) error {
	if event.Record == nil {
		return e.wrong(event, "does not hold what came of the call")
	}
	c.ended = true
	if c.running == nil && c.planned.Client && (c.announced || e.resumed) {
		return nil
	}
	if c.running == nil {
		if err := e.run(c); err != nil {
			return err
		}
	}
	c.running.end(e, &event.Record.Result)
	if c.planned.Final {
		e.conclude(c, event.Record)
	}
	return nil
}

// running is the item of a call that is run here.
type running interface {
	// say takes something that the call says.
	say(e *Events, emission *tool.Emission)
	// end says what came of the call, and ends the item.
	end(e *Events, result *tool.Result)
}

// run adds the item of a call, whose form the tool's category decides.
func (e *Events) run(c *call) (err error) {
	category := c.planned.Category
	if c.planned.Client {
		category = "" // what was answered here in its place did no search
	}
	switch category {
	case "web_search":
		c.running = e.webSearch(&c.planned)
	case "file_search":
		c.running = e.fileSearch(&c.planned)
	case "image_generation":
		c.running = e.image(&c.planned)
	default:
		c.running, err = e.server(&c.planned)
	}
	return err
}

// step says how far a call has come.
func (e *Events) step(name string, at place) {
	e.send(stepEvent{e.head(name), at})
}
