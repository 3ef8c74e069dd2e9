package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/tool"
)

// Values of --stream.
const (
	streamAuto      = "auto" // depends on the dialect of the calls
	streamEvents    = "events"
	streamResponses = "responses"
)

// streamForm stands for no form in the usage of --stream and as its value.
const streamForm = "FORM"

// outcomeEvent is the name and the type of the server-sent event that ends a stream. It is not part
// of the provider's API, whose clients ignore unknown events.
const outcomeEvent = "caisson.batch"

// view prints a batch.
type view struct {
	o       *batchOptions
	dialect dialects.Dialect  // nil for none
	mapper  *responses.Events // converts events to server-sent events; nil to print them unchanged
	broken  error             // why nothing more can be printed
}

func (o *batchOptions) view(dialect dialects.Dialect) *view {
	v := &view{o: o, dialect: dialect}
	form := o.stream
	if form == streamAuto && nameOf(dialect) == dialects.Responses && !o.json {
		form = streamResponses
	}
	if form == streamResponses {
		v.mapper = responses.NewEvents(responses.EventsOptions{})
	}
	return v
}

// show prints one event.
func (v *view) show(event tool.Event) error {
	if v.mapper == nil {
		return v.o.printJSON(event)
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
	if err := dialects.WriteEvent(v.o.stdout, event); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// end prints the outcome of the batch. The records are those of a batch that has ended.
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
	case v.o.stream != "" || ended.waiting != nil:
		return v.o.printJSON(ended)
	case v.dialect != nil && !v.o.json:
		return v.o.printJSON(ended.Results)
	}
	for _, record := range records {
		if err := v.o.printJSON(record); err != nil {
			return err
		}
	}
	return nil
}

// follows reports whether events are printed as they happen. A nil view prints nothing.
func (v *view) follows() bool { return v != nil && v.o.stream != "" }

// follow prints one event and reports whether another one can be printed.
func (v *view) follow(event tool.Event) bool {
	v.broken = v.show(event)
	return v.broken == nil
}

// outcome is what a program reads to continue a batch.
type outcome struct {
	Type   string          `json:"type,omitempty"` // only in server-sent events
	Status executor.Status `json:"status"`
	Batch  string          `json:"batch"`
	// Results are the results of all calls in the dialect, or records.
	Results json.RawMessage `json:"results,omitempty"`
	// Final are the ids of calls whose output may be shown to the user unchanged.
	Final []string `json:"final,omitempty"`
	*waiting
}

// waiting is what a paused batch needs.
type waiting struct {
	Required  required      `json:"required_action"`
	Approvals []tool.Action `json:"approvals"`
	State     string        `json:"state"` // the file
	Expires   time.Time     `json:"expires"`
}

type required struct {
	Type    string    `json:"type"`
	Outputs submitted `json:"submit_tool_outputs"`
}

type submitted struct {
	Calls   json.RawMessage `json:"tool_calls"` // in the dialect
	CallIDs []string        `json:"call_ids"`   // Caisson's, in the same order
}

// tell prints the outcome of a batch and stores a paused one, at its place or, if that is nil, a new
// one. It returns the command's error.
func (o *batchOptions) tell(ctx context.Context, h *host, view *view, ended executor.Report, place *batches.Place) error {
	failures := h.hostFailures(ended)
	if ended.Status == executor.RequiresAction {
		return o.tellWaiting(view, ended, place, failures)
	}
	results, err := view.results(ended.Records)
	if err != nil {
		return view.salvage(ended, failures, failed(exitFailed, err.Error()))
	}
	if err := view.end(outcome{Status: ended.Status, Batch: ended.ID, Results: results, Final: ended.Final}, ended.Records); err != nil {
		return view.salvage(ended, failures, err)
	}
	if ctx.Err() != nil {
		return failed(exitInterrupted, "interrupted")
	}
	if failures != nil {
		return failures
	}
	return nil
}

func (o *batchOptions) tellWaiting(view *view, ended executor.Report, place *batches.Place, failures *failure) error {
	waits, err := view.waiting(ended.Pending)
	if err != nil {
		return view.salvage(ended, failures, err)
	}
	if place == nil {
		place, err = o.place(ended.ID)
	}
	if err == nil {
		err = place.Keep(batches.Batch{Dialect: nameOf(view.dialect), State: *ended.State})
	}
	if err != nil {
		return view.salvage(ended, failures, failed(exitFailed, "the batch is paused but could not be stored, so it cannot be resumed: "+err.Error(),
			"the records of the calls that ended are printed: do not run these calls again",
			"choose another place with --state FILE"))
	}
	waits.State, waits.Expires = absolute(place.Path()), ended.State.Expires()
	if err := view.end(outcome{Status: ended.Status, Batch: ended.ID, waiting: waits}, nil); err != nil {
		return view.salvage(ended, failures, failed(exitFailed, err.Error(), "the batch is paused and stored; resume it with: "+o.resumeCommand(ended)))
	}
	o.hint("resume it with: " + o.resumeCommand(ended))
	if len(waits.Approvals) > 0 {
		o.hint("to refuse a call, use --refuse CALL-ID=REASON instead of --approve")
	}
	if failures == nil {
		failures = &failure{}
	}
	failures.code = exitWaits
	return failures
}

// results returns the results of the calls in the output format.
func (v *view) results(records []tool.Record) (json.RawMessage, error) {
	if v.dialect != nil && !v.o.json {
		return v.dialect.Results(records)
	}
	return encoded(list(records))
}

// waiting returns what the pending actions need.
func (v *view) waiting(pending []tool.Action) (*waiting, error) {
	w := &waiting{Approvals: []tool.Action{}, Required: required{Type: "submit_tool_outputs", Outputs: submitted{CallIDs: []string{}}}}
	calls := []tool.Call{}
	for _, action := range pending {
		if action.Type == tool.NeedsApproval {
			w.Approvals = append(w.Approvals, action)
			continue
		}
		calls = append(calls, action.Call)
		w.Required.Outputs.CallIDs = append(w.Required.Outputs.CallIDs, action.CallID)
	}
	var err error
	if v.dialect == nil {
		w.Required.Outputs.Calls, err = encoded(calls)
	} else {
		w.Required.Outputs.Calls, err = v.dialect.Calls(calls)
	}
	return w, err
}

// nameOf returns the name of a dialect, or "" for none.
func nameOf(dialect dialects.Dialect) string {
	if dialect == nil {
		return ""
	}
	return dialect.Name()
}
