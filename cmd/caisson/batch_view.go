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

// outcome is what a program reads to continue a batch.
type outcome struct {
	Type   string          `json:"type,omitempty"` // among server-sent events alone
	Status executor.Status `json:"status"`
	Batch  string          `json:"batch"`
	// Results are those of all calls, as the dialect has them, or records.
	Results json.RawMessage `json:"results,omitempty"`
	// Final are the call ids of those whose output may be shown to the user as it is.
	Final []string `json:"final,omitempty"`
	*waiting
}

// waiting is what a batch waits for.
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
	Calls   json.RawMessage `json:"tool_calls"` // as the dialect has them
	CallIDs []string        `json:"call_ids"`   // our own, in the same order
}

// tell prints the outcome of a batch, and stores a paused one. It returns how the command ends.
func (o *batchOptions) tell(ctx context.Context, h *host, view *view, ended done, place func() (*batches.Place, error)) error {
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

func (o *batchOptions) tellWaiting(view *view, ended done, placeOf func() (*batches.Place, error), failures *failure) error {
	waits, err := view.waiting(ended.Pending)
	if err != nil {
		return view.salvage(ended, failures, err)
	}
	place, err := placeOf()
	if err == nil {
		err = place.Keep(batches.Batch{Dialect: view.name(), State: *ended.State})
	}
	if err != nil {
		return view.salvage(ended, failures, failed(exitFailed, "the batch waits, and cannot be gone on with, since it was not kept: "+err.Error(),
			"the records of the calls that have ended are printed: do not have these made again",
			"choose another place with --state FILE"))
	}
	waits.State, waits.Expires = absolute(place.Path()), ended.State.Expires()
	if err := view.end(outcome{Status: ended.Status, Batch: ended.ID, waiting: waits}, nil); err != nil {
		return view.salvage(ended, failures, failed(exitFailed, err.Error(), "the batch is paused and stored; resume it with: "+o.resumeCommand(ended)))
	}
	if !o.quiet {
		printHint(view.env.stderr, "resume it with: "+o.resumeCommand(ended))
		if len(waits.Approvals) > 0 {
			printHint(view.env.stderr, "what is not to run is named by --refuse CALL-ID=REASON instead of --approve")
		}
	}
	if failures == nil {
		failures = &failure{}
	}
	failures.code = exitWaits
	return failures
}

// results returns what the calls came to, as it is handed back.
func (v *view) results(records []tool.Record) (json.RawMessage, error) {
	if v.dialect != nil && !v.records {
		return v.dialect.Results(records)
	}
	return encoded(list(records))
}

// waiting returns what is waited for.
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

// name returns the name of the calls' dialect, "" for none.
func (v *view) name() string { return nameOf(v.dialect) }

func nameOf(dialect dialects.Dialect) string {
	if dialect == nil {
		return ""
	}
	return dialect.Name()
}
