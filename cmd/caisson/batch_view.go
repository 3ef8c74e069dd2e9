package main

import (
	"fmt"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/tool"
)

// The values of --stream.
const (
	streamAuto      = "auto" // it depends on the calls
	streamEvents    = "events"
	streamResponses = "responses"
)

// outcomeEvent is the name and the type of the server-sent event that ends a stream. It is none of
// the API's; its clients pass over what they do not know.
const outcomeEvent = "caisson.batch"

// view is how a batch is shown.
type view struct {
	env     environment
	dialect dialects.Dialect  // nil for none
	records bool              // results are records, whatever the dialect
	events  bool              // events are shown, too
	mapper  *responses.Events // as what server-sent events they are; nil: as they are
	broken  error             // why nothing more can be shown
}

func (o *batchOptions) view(env environment, dialect dialects.Dialect) *view {
	v := &view{env: env, dialect: dialect, records: o.json, events: o.stream != ""}
	form := o.stream
	if form == streamAuto && nameOf(dialect) == dialects.Responses && !o.json {
		form = streamResponses
	}
	if form == streamResponses {
		v.mapper = responses.NewEvents(responses.EventsOptions{})
	}
	return v
}

// show shows one event.
func (v *view) show(event tool.Event) error {
	if v.mapper == nil {
		return v.env.printJSON(event)
	}
	mapped, err := v.mapper.Map(event)
	if err != nil {
		return err
	}
	for _, m := range mapped {
		if err := v.write(m); err != nil {
			return err
		}
	}
	return nil
}

// write writes one server-sent event.
func (v *view) write(event dialects.Event) error {
	event.Data = visible(event.Data)
	if err := dialects.WriteEvent(v.env.stdout, event); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// end shows what became of the batch: the records are those of one that has ended.
func (v *view) end(ended outcome, records []tool.Record) error {
	switch {
	case v.broken != nil:
		return v.broken
	case v.mapper != nil:
		ended.Type = outcomeEvent
		data, err := encoded(ended)
		if err != nil {
			return err
		}
		return v.write(dialects.Event{Name: outcomeEvent, Data: data})
	case v.events || ended.waiting != nil:
		return v.env.printJSON(ended)
	case v.dialect != nil && !v.records:
		return v.env.printJSON(ended.Results)
	}
	for _, record := range records {
		if err := v.env.printJSON(record); err != nil {
			return err
		}
	}
	return nil
}

// follows reports whether what happens is shown as it does. A nil view shows nothing.
func (v *view) follows() bool { return v != nil && v.events }

// follow shows one event, and reports whether another one can be shown.
func (v *view) follow(event tool.Event) bool {
	v.broken = v.show(event)
	return v.broken == nil
}
