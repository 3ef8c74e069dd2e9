package executor_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// modelHistory is everything that was seen of a run of the model.
type modelHistory struct {
	options executor.Options
	batches []modelDone
	entries []executor.Entry
	events  []tool.Event
	runs    map[string]modelRun
	writes  map[modelValue]string // the id of the call that wrote it

	byID     map[string]executor.Entry
	started  map[string]time.Time // of each call, by its events
	finished map[string]time.Time
	made     map[string]int // how many calls a call made
	barriers []executor.Entry
	faults   []string
}

// modelDone is a batch with its report and the results that the reference wants.
type modelDone struct {
	session *executor.Session
	calls   []tool.Call
	wants   []modelWant
	report  executor.Report
}

func (h *modelHistory) fault(format string, arguments ...any) {
	if len(h.faults) < 20 {
		h.faults = append(h.faults, fmt.Sprintf(format, arguments...))
	}
}

// check returns the faults of the history; nil if there are none.
func (h *modelHistory) check() []string {
	h.faults = nil
	h.index()
	reported := map[string]bool{}
	for _, done := range h.batches {
		h.checkRecords(done)
		h.checkBarriers(done)
		for _, record := range done.report.Records {
			if reported[record.CallID] {
				h.fault("%s is in two reports", record.CallID)
			}
			reported[record.CallID] = true
			if entry, ok := h.byID[record.CallID]; !ok || !reflect.DeepEqual(entry.Record, record) {
				h.fault("the recorder does not have the reported record of %s", record.CallID)
			}
		}
	}
	for _, entry := range h.entries {
		if reported[entry.Record.CallID] != (entry.Record.Parent == "") {
			h.fault("%s of parent %q reported: %t", entry.Record.CallID, entry.Record.Parent, reported[entry.Record.CallID])
		}
		h.checkEntry(entry)
	}
	h.checkEvents()
	return h.faults
}

// index looks up entries and the times of events.
func (h *modelHistory) index() {
	h.byID, h.started, h.finished = map[string]executor.Entry{}, map[string]time.Time{}, map[string]time.Time{}
	h.made, h.barriers = map[string]int{}, nil
	for _, entry := range h.entries {
		if _, twice := h.byID[entry.Record.CallID]; twice {
			h.fault("%s was recorded twice", entry.Record.CallID)
		}
		h.byID[entry.Record.CallID] = entry
		h.made[entry.Record.Parent]++
		if slices.Contains(modelWriting, entry.Tool) {
			h.barriers = append(h.barriers, entry)
		}
	}
	for _, event := range h.events {
		switch event.Type {
		case tool.CallStarted:
			h.started[event.CallID] = event.Time
		case tool.CallFinished:
			h.finished[event.CallID] = event.Time
		}
	}
}

var sharedNumber = regexp.MustCompile(`shared=(\d+)`)

// checkRecords compares a report with the reference.
func (h *modelHistory) checkRecords(done modelDone) {
	if len(done.report.Records) != len(done.calls) {
		h.fault("%d records of %d calls", len(done.report.Records), len(done.calls))
		return
	}
	most := int(min(h.options.Output.PerCall, max(512, h.options.Output.PerBatch/int64(max(1, len(done.calls))))))
	for i, record := range done.report.Records {
		want := done.wants[i]
		at := fmt.Sprintf("batch %s, call %d, %s %s", done.report.ID, i, done.calls[i].Function.Name, done.calls[i].Function.Arguments)
		if record.Call != done.calls[i] {
			h.fault("%s: the record is of %+v", at, record.Call)
		}
		whole := h.byID[record.CallID].Whole
		output := sharedNumber.ReplaceAllString(whole.Output, "shared=?")
		if record.Result.Kind != want.kind || record.Result.Success != (want.kind == "") || output != want.output {
			h.fault("%s: %s %q; want %s %q", at, record.Result.Kind, output, want.kind, want.output)
		}
		if record.Skipped != want.skipped || len(record.Repairs) > 0 {
			h.fault("%s: skipped %t, repairs %v; want %t", at, record.Skipped, record.Repairs, want.skipped)
		}
		switch source := ""; {
		case want.source >= 0:
			source = done.report.Records[want.source].CallID
			if record.Source != source || !reflect.DeepEqual(whole, h.byID[source].Whole) {
				h.fault("%s: has the result of %q; want that of %q", at, record.Source, source)
			}
		case !record.Cached && record.Source != "":
			h.fault("%s: has the result of %q; want its own", at, record.Source)
		}
		h.checkCut(at, record, whole.Output, most)
	}
}

func (h *modelHistory) checkCut(at string, record tool.Record, whole string, most int) {
	if len(whole) <= most {
		if record.Result.Output != whole || len(record.Cuts) > 0 {
			h.fault("%s: was cut though it fits", at)
		}
		return
	}
	if len(record.Cuts) != 1 || record.Result.Size() > most || record.Result.Output[:record.Cuts[0].Kept] != whole[:record.Cuts[0].Kept] ||
		!strings.Contains(record.Result.Output[record.Cuts[0].Kept:], "cut") {
		h.fault("%s: is not the beginning of what it was: %+v", at, record.Cuts)
	}
}

// checkBarriers checks that a call that is not read-only overlaps no other of its batch, and
// that earlier calls ran before it.
func (h *modelHistory) checkBarriers(done modelDone) {
	for i, first := range done.report.Records {
		before, ran := h.runs[first.CallID]
		for j := i + 1; ran && j < len(done.report.Records); j++ {
			after, ran := h.runs[done.report.Records[j].CallID]
			apart := slices.Contains(modelWriting, done.calls[i].Function.Name) || slices.Contains(modelWriting, done.calls[j].Function.Name)
			if ran && apart && !before.end.Before(after.begin) {
				h.fault("batch %s: calls %d and %d ran at the same time", done.report.ID, i, j)
			}
		}
	}
}

// checkEntry checks one call by itself: that it ran once or not at all, where its answer
// comes from, and that this was true while it was asked.
func (h *modelHistory) checkEntry(entry executor.Entry) {
	record := entry.Record
	run, ran := h.runs[record.CallID]
	if ran == (record.Skipped || record.Cached) || ran && run.times != 1 {
		h.fault("%s %s: skipped %t, cached %t, ran %d times", entry.Tool, record.CallID, record.Skipped, record.Cached, run.times)
	}
	if parent := record.Parent; parent != "" {
		inside, ran := h.runs[parent]
		caller, ok := h.byID[parent]
		if !ok || !ran || caller.Batch != entry.Batch || h.started[record.CallID].Before(inside.begin) || h.finished[record.CallID].After(inside.end) {
			h.fault("%s %s is not within its caller %s", entry.Tool, record.CallID, parent)
		}
	}
	if strings.HasPrefix(entry.Tool, "relay") && ran {
		h.checkMade(entry)
	}
	if record.Cached {
		h.checkCached(entry)
	}
	asked := record.CallID
	if record.Skipped && record.Source != "" {
		asked = record.Source // the one that was asked in its place
	}
	if slices.Contains(modelReading, entry.Tool) {
		h.checkCurrent(entry, h.started[asked])
	}
}

// checkMade checks that a relay made all calls of its script, and no other.
func (h *modelHistory) checkMade(entry executor.Entry) {
	if made, want := h.made[entry.Record.CallID], len(parseScript(entry.Record.Function.Arguments)); made != want {
		h.fault("%s %s made %d calls; want %d", entry.Tool, entry.Record.CallID, made, want)
	}
}

// checkCached checks that an answer that was used again may be: it is of the same question,
// in scope, and no barrier came since it was looked for.
func (h *modelHistory) checkCached(entry executor.Entry) {
	record := entry.Record
	source, ok := h.byID[record.Source]
	_, ran := h.runs[record.Source]
	name, arguments := resolve(record.Function)
	sourceName, sourceArguments := resolve(source.Record.Function)
	switch {
	case !ok || !ran || !source.Record.Result.Success:
		h.fault("%s: its source %q did not succeed by itself", record.CallID, record.Source)
		return
	case name != sourceName || canonical(arguments) != canonical(sourceArguments) || source.Tenant != entry.Tenant || !reflect.DeepEqual(entry.Whole, source.Whole):
		h.fault("%s: its source %q was asked something else", record.CallID, record.Source)
	case !slices.Contains(modelReading, name) || name == "fresh":
		h.fault("%s: %s is not for using again", record.CallID, name)
	}
	switch h.options.Reuse.Scope {
	case executor.ReuseTenant:
	case executor.ReuseSession:
		if source.Session != entry.Session {
			h.fault("%s: is another session's", record.CallID)
		}
	default:
		h.fault("%s: nothing is to be used again", record.CallID)
	}
	for _, barrier := range h.barriers {
		id := barrier.Record.CallID
		during, ran := h.runs[id]
		if !ran || barrier.Tenant != entry.Tenant {
			continue
		}
		looked, asked := h.runs[record.Source].begin, h.started[record.CallID]
		if looked.Before(h.started[id]) && asked.After(during.begin) || looked.Before(during.end) && asked.After(h.finished[id]) {
			h.fault("%s: the barrier %s is between it and its source %s", record.CallID, id, record.Source)
		}
	}
}

// checkCurrent checks that each value that a call says "shared" has was true at some time
// since it was asked.
func (h *modelHistory) checkCurrent(entry executor.Entry, asked time.Time) {
	for _, match := range sharedNumber.FindAllStringSubmatch(entry.Whole.Output, -1) {
		value, _ := strconv.ParseInt(match[1], 10, 64)
		written, known := h.writes[modelValue{entry.Tenant, value}]
		if value > 0 && (!known || h.started[written].After(h.finished[entry.Record.CallID])) {
			h.fault("%s %s: says %d before it was written", entry.Tool, entry.Record.CallID, value)
		}
		over, known := h.writes[modelValue{entry.Tenant, value + 1}]
		if known && h.finished[over].Before(asked) {
			h.fault("%s %s: says %d after that was written over by %s", entry.Tool, entry.Record.CallID, value, over)
		}
	}
}

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
			executor.AddTotals(&sum, event.Record)
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
