package executor_test

import (
	"reflect"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// checkEvents checks that each batch and each of its calls has started once and then ended
// once, with the record that the recorder has and with totals that are true.
func (h *modelHistory) checkEvents() {
	totals := map[string]tool.Totals{}
	begun, over := map[string]int{}, map[string]int{}
	calls := map[string]map[string]int{} // of a batch, how often each was named at its start
	for _, event := range h.events {
		batch := event.Batch
		switch event.Type {
		case tool.BatchStarted:
			begun[batch]++
			calls[batch] = map[string]int{}
			for _, call := range event.Calls {
				calls[batch][call.CallID]++
			}
		case tool.CallStarted:
			begun[event.CallID]++
			if begun[batch] != 1 || over[batch] > 0 || (event.Parent == "") != (calls[batch][event.CallID] == 1) {
				h.fault("%s started outside of its batch", event.CallID)
			}
		case tool.CallFinished:
			over[event.CallID]++
			if begun[event.CallID] != 1 || over[batch] > 0 || event.Record == nil {
				h.fault("%s ended without a start", event.CallID)
				continue
			}
			entry, ok := h.byID[event.CallID]
			if !ok || !reflect.DeepEqual(entry.Record, h.uncut(*event.Record, entry)) || entry.Batch != batch || entry.Tool != event.Tool || event.Hidden != (entry.Tool == "hidden") {
				h.fault("the recorder does not have what the event says of %s", event.CallID)
			}
			sum := totals[batch]
			sum.Add(event.Record)
			totals[batch] = sum
		case tool.BatchFinished:
			over[batch]++
			if event.Totals == nil || *event.Totals != totals[batch] {
				h.fault("batch %s: totals %+v; want %+v", batch, event.Totals, totals[batch])
			}
		}
	}
	for _, entry := range h.entries {
		if id := entry.Record.CallID; begun[id] != 1 || over[id] != 1 {
			h.fault("%s: %d starts and %d ends", id, begun[id], over[id])
		}
	}
	for _, done := range h.batches {
		if id := done.report.ID; begun[id] != 1 || over[id] != 1 || done.report.Totals != totals[id] {
			h.fault("batch %s: %d starts and %d ends, and totals %+v; want %+v", id, begun[id], over[id], done.report.Totals, totals[id])
		}
	}
	if len(begun) != len(over) || len(begun) != len(h.entries)+len(h.batches) {
		h.fault("%d started and %d ended, of %d", len(begun), len(over), len(h.entries)+len(h.batches))
	}
}

// uncut is an event's record as the recorder has it: of calls that tools made, the events' are
// cut where they are long.
func (h *modelHistory) uncut(record tool.Record, entry executor.Entry) tool.Record {
	if record.Parent == "" || len(record.Cuts) == 0 {
		return record
	}
	if record.Result.Size() > int(h.options.Output.PerCall) {
		h.fault("the event of %s has more than it should", record.CallID)
	}
	record.Result, record.Cuts = entry.Record.Result, nil
	return record
}
