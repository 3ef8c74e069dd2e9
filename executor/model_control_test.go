package executor_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// copied returns a history that can be changed without changing this one.
func (h *modelHistory) copied() *modelHistory {
	c := &modelHistory{options: h.options, batches: slices.Clone(h.batches), entries: slices.Clone(h.entries), events: slices.Clone(h.events), runs: maps.Clone(h.runs), writes: maps.Clone(h.writes)}
	for i := range c.batches {
		c.batches[i].report.Records = slices.Clone(c.batches[i].report.Records)
	}
	for i := range c.events {
		if record := c.events[i].Record; record != nil {
			changed := *record
			c.events[i].Record = &changed
		}
	}
	c.index()
	return c
}

// rewrite changes a call's record wherever it is, as if the executor had made it so.
func (h *modelHistory) rewrite(callID string, change func(*executor.Entry)) {
	var changed executor.Entry
	for i := range h.entries {
		if h.entries[i].Record.CallID == callID {
			change(&h.entries[i])
			changed = h.entries[i]
		}
	}
	for _, done := range h.batches {
		for i := range done.report.Records {
			if done.report.Records[i].CallID == callID {
				done.report.Records[i] = changed.Record
			}
		}
	}
	for _, event := range h.events {
		if event.Record != nil && event.CallID == callID {
			*event.Record = changed.Record
		}
	}
}

// find returns the last entry that matches. There must be one.
func (h *modelHistory) find(t *testing.T, match func(executor.Entry) bool) executor.Entry {
	t.Helper()
	for _, entry := range slices.Backward(h.entries) {
		if match(entry) {
			return entry
		}
	}
	require.Fail(t, "the history is too short")
	return executor.Entry{}
}

// event returns where the first event is that matches. There must be one.
func (h *modelHistory) event(t *testing.T, kind tool.EventType) int {
	t.Helper()
	at := slices.IndexFunc(h.events, func(event tool.Event) bool { return event.Type == kind })
	require.GreaterOrEqual(t, at, 0)
	return at
}

func topLevel(entry executor.Entry) bool { return entry.Record.Parent == "" }
func succeeded(entry executor.Entry) bool {
	return topLevel(entry) && entry.Record.Result.Success && !entry.Record.Skipped && !entry.Record.Cached
}
func duplicate(entry executor.Entry) bool {
	return entry.Record.Skipped && entry.Record.Source != ""
}
func cached(entry executor.Entry) bool { return entry.Record.Cached }
func wasCut(entry executor.Entry) bool { return len(entry.Record.Cuts) > 0 }
func isShared(entry executor.Entry) bool {
	return succeeded(entry) && entry.Tool == "fresh" && strings.HasPrefix(entry.Whole.Output, "shared=")
}

// says replaces the whole output of a call.
func says(entry *executor.Entry, output string) {
	entry.Whole.Output, entry.Record.Result.Output = output, output
}

// TestModelNotices: the model test notices every fault that it checks for.
func TestModelNotices(t *testing.T) {
	played := playModel(t, modelOptions()["tenant"], 1, 40)
	require.Empty(t, played.check())
	require.Empty(t, played.copied().check(), "control: a copy is as good")
	// The check that must notice a fault, for faults that several checks could notice.
	words := map[string]string{
		"the value of before":             "; want",
		"a shared value of long ago":      "after that was written over",
		"a shared value that is to come":  "before it was written",
		"an answer from before a barrier": "is between it and its source",
		"an answer of another tenant":     "was asked something else",
		"an answer of another session":    "is another session's",
		"a barrier beside a call":         "ran at the same time",
		"a nested call after its caller":  "is not within its caller",
		"cut without a mark":              "is not the beginning of what it was",
	}
	for name, spoil := range modelFaults() {
		t.Run(name, func(t *testing.T) {
			h := played.copied()
			spoil(t, h)
			faults := h.check()
			assert.NotEmpty(t, faults)
			assert.Contains(t, strings.Join(faults, "\n"), words[name])
		})
	}
}

func modelFaults() map[string]func(*testing.T, *modelHistory) {
	// of spoils the last call that matches.
	of := func(match func(executor.Entry) bool, change func(*executor.Entry)) func(*testing.T, *modelHistory) {
		return func(t *testing.T, h *modelHistory) { h.rewrite(h.find(t, match).Record.CallID, change) }
	}
	faults := map[string]func(*testing.T, *modelHistory){
		"a success that failed": of(succeeded, func(e *executor.Entry) { e.Record.Result.Success, e.Record.Result.Kind = false, tool.ToolFailed }),
		"another kind":          of(func(e executor.Entry) bool { return e.Record.Result.Kind == tool.Trap && topLevel(e) }, func(e *executor.Entry) { e.Record.Result.Kind = tool.Internal }),
		"another output":        of(succeeded, func(e *executor.Entry) { says(e, e.Whole.Output+"x") }),
		"the value of before": of(func(e executor.Entry) bool {
			return succeeded(e) && e.Tool == "read" && strings.HasPrefix(e.Whole.Output, "s") && !strings.HasSuffix(e.Whole.Output, "=0") && !strings.HasPrefix(e.Whole.Output, "shared")
		}, func(e *executor.Entry) { says(e, e.Whole.Output[:strings.Index(e.Whole.Output, "=")]+"=0") }),
		"a shared value of long ago":      of(isShared, func(e *executor.Entry) { says(e, "shared=1") }),
		"a shared value that is to come":  of(isShared, func(e *executor.Entry) { says(e, "shared=123456") }),
		"repairs":                         of(succeeded, func(e *executor.Entry) { e.Record.Repairs = []tool.Repair{{Rule: "clamp"}} }),
		"skipped, but it ran":             of(succeeded, func(e *executor.Entry) { e.Record.Skipped = true }),
		"a duplicate that is not skipped": of(duplicate, func(e *executor.Entry) { e.Record.Skipped = false }),
		"a duplicate of nothing":          of(duplicate, func(e *executor.Entry) { e.Record.Source = "" }),
		"cached, but it ran":              of(succeeded, func(e *executor.Entry) { e.Record.Cached = true }),
		"cached from nowhere":             of(cached, func(e *executor.Entry) { e.Record.Source = "gone" }),
		"cut without a mark":              of(wasCut, func(e *executor.Entry) { e.Record.Result.Output = e.Record.Result.Output[:e.Record.Cuts[0].Kept] }),
		"cut to something else":           of(wasCut, func(e *executor.Entry) { e.Record.Result.Output = "x" + e.Record.Result.Output[1:] }),
		"not cut":                         of(wasCut, func(e *executor.Entry) { e.Record.Result.Output, e.Record.Cuts = e.Whole.Output, nil }),
		"a nested call that nobody made":  of(func(e executor.Entry) bool { return !topLevel(e) }, func(e *executor.Entry) { e.Record.Parent = "gone" }),
		"a nested call in no call's name": of(func(e executor.Entry) bool { return !topLevel(e) }, func(e *executor.Entry) { e.Record.Parent = "" }),
		"a call that asks something else": of(succeeded, func(e *executor.Entry) { e.Record.Function.Arguments = `{"n":99}` }),
	}
	maps.Copy(faults, modelFaultsOfOrder())
	maps.Copy(faults, modelFaultsOfEvents())
	return faults
}

// modelFaultsOfOrder are faults in the order and the number of runs.
func modelFaultsOfOrder() map[string]func(*testing.T, *modelHistory) {
	return map[string]func(*testing.T, *modelHistory){
		"a call that ran twice": func(t *testing.T, h *modelHistory) {
			id := h.find(t, succeeded).Record.CallID
			run := h.runs[id]
			run.times = 2
			h.runs[id] = run
		},
		"a duplicate that ran": func(t *testing.T, h *modelHistory) {
			h.runs[h.find(t, duplicate).Record.CallID] = modelRun{begin: time.Now(), end: time.Now(), times: 1}
		},
		"a call that did not run": func(t *testing.T, h *modelHistory) { delete(h.runs, h.find(t, succeeded).Record.CallID) },
		"a barrier beside a call": func(t *testing.T, h *modelHistory) {
			for _, done := range h.batches {
				for i, record := range done.report.Records {
					run, ran := h.runs[record.CallID]
					if i == 0 || !ran || done.calls[i].Function.Name != "write" {
						continue
					}
					if before, ran := h.runs[done.report.Records[i-1].CallID]; ran {
						run.begin = before.end.Add(-time.Nanosecond)
						h.runs[record.CallID] = run
						return
					}
				}
			}
			require.Fail(t, "the history is too short")
		},
		"an answer from before a barrier": func(t *testing.T, h *modelHistory) {
			for _, entry := range slices.Backward(h.entries) {
				if !entry.Record.Cached {
					continue
				}
				for _, other := range h.entries {
					_, ran := h.runs[other.Record.CallID]
					if ran && other.Record.CallID != entry.Record.Source && other.Tenant == entry.Tenant && other.Record.Function == entry.Record.Function && other.Whole.Output == entry.Whole.Output {
						h.rewrite(entry.Record.CallID, func(e *executor.Entry) { e.Record.Source = other.Record.CallID })
						return
					}
				}
			}
			require.Fail(t, "the history is too short")
		},
		"an answer of another tenant": func(t *testing.T, h *modelHistory) {
			entry := h.find(t, func(e executor.Entry) bool { return cached(e) && e.Tool == "pure" })
			other := h.find(t, func(e executor.Entry) bool {
				return succeeded(e) && e.Tenant != entry.Tenant && e.Record.Function == entry.Record.Function
			})
			h.rewrite(entry.Record.CallID, func(e *executor.Entry) { e.Record.Source = other.Record.CallID })
		},
		"an answer of another session": func(t *testing.T, h *modelHistory) {
			h.find(t, func(e executor.Entry) bool { return cached(e) && h.byID[e.Record.Source].Session != e.Session })
			h.options.Reuse.Scope = executor.ReuseSession
		},
		"an answer where there is to be none": func(t *testing.T, h *modelHistory) {
			h.find(t, cached)
			h.options.Reuse.Scope = executor.ReuseBatch
		},
		"a nested call after its caller": func(t *testing.T, h *modelHistory) {
			id := h.find(t, func(e executor.Entry) bool { return !topLevel(e) }).Record.Parent
			run := h.runs[id]
			run.end = run.begin
			h.runs[id] = run
		},
	}
}

// modelFaultsOfEvents are faults of accounting.
func modelFaultsOfEvents() map[string]func(*testing.T, *modelHistory) {
	faults := map[string]func(*testing.T, *modelHistory){
		"a record too few":  func(t *testing.T, h *modelHistory) { h.entries = h.entries[1:] },
		"a record too many": func(t *testing.T, h *modelHistory) { h.entries = append(h.entries, h.entries[0]) },
		"a report too short": func(t *testing.T, h *modelHistory) {
			at := slices.IndexFunc(h.batches, func(d modelDone) bool { return len(d.calls) > 0 })
			h.batches[at].report.Records = h.batches[at].report.Records[1:]
		},
		"records in another order": func(t *testing.T, h *modelHistory) {
			at := slices.IndexFunc(h.batches, func(d modelDone) bool { return len(d.calls) > 1 && d.calls[0] != d.calls[1] })
			records := h.batches[at].report.Records
			records[0], records[1] = records[1], records[0]
		},
		"totals of a report": func(t *testing.T, h *modelHistory) { h.batches[0].report.Totals.Calls++ },
		"totals of an event": func(t *testing.T, h *modelHistory) {
			at := h.event(t, tool.BatchFinished)
			totals := *h.events[at].Totals
			totals.Failed++
			h.events[at].Totals = &totals
		},
		"an end before its start": func(t *testing.T, h *modelHistory) {
			at := h.event(t, tool.CallStarted)
			id := h.events[at].CallID
			end := slices.IndexFunc(h.events, func(e tool.Event) bool { return e.Type == tool.CallFinished && e.CallID == id })
			h.events[at], h.events[end] = h.events[end], h.events[at]
		},
		"an event with another record": func(t *testing.T, h *modelHistory) { h.events[h.event(t, tool.CallFinished)].Record.Log = "x" },
		"an event without a record":    func(t *testing.T, h *modelHistory) { h.events[h.event(t, tool.CallFinished)].Record = nil },
		"an event that shows what is hidden": func(t *testing.T, h *modelHistory) {
			at := slices.IndexFunc(h.events, func(e tool.Event) bool { return e.Type == tool.CallFinished && e.Hidden })
			require.GreaterOrEqual(t, at, 0)
			h.events[at].Hidden = false
		},
	}
	for _, kind := range []tool.EventType{tool.BatchStarted, tool.CallStarted, tool.CallFinished, tool.BatchFinished} {
		faults["no event "+string(kind)] = func(t *testing.T, h *modelHistory) {
			at := h.event(t, kind)
			h.events = slices.Delete(h.events, at, at+1)
		}
		faults["two events "+string(kind)] = func(t *testing.T, h *modelHistory) {
			at := h.event(t, kind)
			h.events = slices.Insert(h.events, at, h.events[at])
		}
	}
	return faults
}
