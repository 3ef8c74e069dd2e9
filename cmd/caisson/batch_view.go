package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/tool"
)

// Values of --stream.
const (
	streamAuto      = "auto" // depends on the dialect of the calls
	streamEvents    = "events"
	streamResponses = "responses"
)

// streamForm is the placeholder in the usage of --stream, and the flag's value if no form is given.
const streamForm = "FORM"

// outcomeEvent is the name and the type of the server-sent event that ends a stream. It is not part
// of the provider's API, whose clients ignore unknown events.
const outcomeEvent = "caisson.batch"

// batchView prints a batch.
type batchView struct {
	o       *batchOptions
	dialect dialects.Dialect  // nil for none
	mapper  *responses.Events // converts events to server-sent events; nil to print them unchanged
	broken  error             // why nothing more can be printed
}

func (o *batchOptions) view(dialect dialects.Dialect) *batchView {
	v := &batchView{o: o, dialect: dialect}
	form := o.stream
	if form == streamAuto && nameOf(dialect) == dialects.Responses && !o.json {
		form = streamResponses
	}
	if form == streamResponses {
		v.mapper = responses.NewEvents(responses.EventsOptions{})
	}
	return v
}

func (v *batchView) show(event tool.Event) error {
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

func (v *batchView) write(event dialects.Event) error {
	event.Data = terminal.EscapeJSON(event.Data)
	if err := dialects.WriteEvent(v.o.stdout, event); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// end prints the outcome of the batch. The records are those of a batch that has ended.
func (v *batchView) end(ended outcome, records []tool.Record) error {
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
func (v *batchView) follows() bool { return v != nil && v.o.stream != "" }

// follow prints one event and reports whether another one can be printed.
func (v *batchView) follow(event tool.Event) bool {
	v.broken = v.show(event)
	return v.broken == nil
}

// outcome is the JSON from which a program continues a batch.
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

// waiting has the outputs and approvals that a paused batch needs.
type waiting struct {
	Required struct {
		Type    string `json:"type"`
		Outputs struct {
			Calls   json.RawMessage `json:"tool_calls"` // in the dialect
			CallIDs []string        `json:"call_ids"`   // Caisson's, in the same order
		} `json:"submit_tool_outputs"`
	} `json:"required_action"`
	Approvals []tool.Action `json:"approvals"`
	State     string        `json:"state"` // the file
	Expires   time.Time     `json:"expires"`
}

// tell prints the outcome of a batch and stores a paused one, at its place or, if that is nil, a new one.
func (o *batchOptions) tell(
	ctx context.Context, h *host, v *batchView, ended executor.Report, place *batches.Place,
) error {
	failures := h.hostFailures(ended)
	if ended.Status == executor.RequiresAction {
		return o.tellWaiting(v, ended, place, failures)
	}
	results, err := v.results(ended.Records)
	if err != nil {
		return v.salvage(ended, failures, failed(exitFailed, err.Error()))
	}
	told := outcome{Status: ended.Status, Batch: ended.ID, Results: results, Final: ended.Final}
	switch err := v.end(told, ended.Records); {
	case err != nil:
		return v.salvage(ended, failures, err)
	case ctx.Err() != nil:
		return failed(exitInterrupted, "interrupted")
	case failures != nil:
		return failures
	}
	return nil
}

func (o *batchOptions) tellWaiting(v *batchView, ended executor.Report, place *batches.Place, failures *failure) error {
	waits, err := v.waiting(ended.Pending)
	if err != nil {
		return v.salvage(ended, failures, err)
	}
	if place == nil {
		place, err = o.place(ended.ID)
	}
	if err == nil {
		err = place.Keep(batches.Batch{Dialect: nameOf(v.dialect), State: *ended.State})
	}
	if err != nil {
		return v.salvage(ended, failures,
			failed(exitFailed, "the batch is paused but could not be stored, so it cannot be resumed: "+err.Error(),
				"the records of the calls that ended are printed: do not run these calls again",
				"choose another place with --state FILE"))
	}
	if waits.State, err = filepath.Abs(place.Path()); err != nil {
		waits.State = place.Path()
	}
	waits.Expires = ended.State.Expires()
	if err := v.end(outcome{Status: ended.Status, Batch: ended.ID, waiting: waits}, nil); err != nil {
		return v.salvage(ended, failures,
			failed(exitFailed, err.Error(), "the batch is paused and stored; resume it with: "+o.resumeCommand(ended)))
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

func (v *batchView) results(records []tool.Record) (json.RawMessage, error) {
	if v.dialect != nil && !v.o.json {
		return v.dialect.Results(records)
	}
	return encoded(jsontext.List(records))
}

// waiting returns the outputs and approvals that the pending actions need.
func (v *batchView) waiting(pending []tool.Action) (*waiting, error) {
	w := &waiting{Approvals: []tool.Action{}}
	w.Required.Type, w.Required.Outputs.CallIDs = "submit_tool_outputs", []string{}
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

func nameOf(dialect dialects.Dialect) string {
	if dialect == nil {
		return ""
	}
	return dialect.Name()
}

// batchFailed is the status of a batch that could not be stored or printed. Its results are the records so far.
const batchFailed executor.Status = "failed"

// salvage prints the records of the calls that have ended after another failure. A caller that did not see them would
// have the calls run again. It returns the failure together with the host's failures.
func (v *batchView) salvage(ended executor.Report, failures *failure, err error) error {
	if v.showRecords(ended) != nil {
		v.o.printLost(ended.Records)
	}
	known, ok := errors.AsType[*failure](err)
	if !ok {
		known = &failure{exitFailed, messagesOf(err)}
	}
	if failures != nil {
		known = &failure{failures.code, append(failures.messages, known.messages...)}
	}
	return known
}

func (v *batchView) showRecords(ended executor.Report) error {
	results, err := encoded(jsontext.List(ended.Records))
	if err != nil {
		return err
	}
	whole := *v
	whole.broken, whole.dialect = nil, nil // omit what could not be printed
	return whole.end(outcome{Status: batchFailed, Batch: ended.ID, Results: results}, ended.Records)
}

// hostFailures returns the failures that the operator must know about, or nil.
func (h *host) hostFailures(ended executor.Report) *failure {
	all := &failure{code: exitFailed}
	add := func(call int, record tool.Record) {
		for _, m := range h.internalFailure(record).messages {
			m.text = fmt.Sprintf("call %d: %s", call+1, m.text)
			all.messages = append(all.messages, m)
		}
	}
	for i, record := range ended.Records {
		if record.Result.Kind == tool.Internal {
			add(i, record)
		}
		for _, made := range h.observer.failed {
			if made.Result.Kind == tool.Internal && h.observer.root(made.CallID) == record.CallID {
				add(i, made)
			}
		}
	}
	if stuck := h.runaways.failure(); stuck != nil {
		all.code, all.messages = stuck.code, append(all.messages, stuck.messages...)
	}
	if len(all.messages) == 0 {
		return nil
	}
	return all
}
