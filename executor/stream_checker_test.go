package executor_test

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// watched is a batch, or a part of one between two pauses, as a stream has shown it, with what is
// known of it from elsewhere.
type watched struct {
	events []tool.Event
	report executor.Report
	before map[string]bool // ids of calls that had ended before, where it was resumed
	said   func(call string) []saying
	hidden func(name string) bool
	writes func(name string) bool // that calls of the tool are barriers
}

// streamChecker checks the promises of [tool.EventType], [tool.Event] and [executor.Stream].
type streamChecker struct {
	watched
	faults  []string
	listed  []tool.Planned
	calls   map[string]*watchedCall // those that are listed
	speaker string
	spoken  []string // in the order of their first words
}

// watchedCall is a call as far as its events tell.
type watchedCall struct {
	waited, started, finished bool
	last                      time.Time
	heard                     int // the number of its emissions that were read or are known to be lost
	lost                      int
}

// check returns the faults of a stream; nil if there are none.
func (w watched) check() []string {
	c := streamChecker{watched: w, calls: map[string]*watchedCall{}}
	if len(w.events) < 2 {
		return []string{"no events"}
	}
	c.begin(w.events[0])
	for _, event := range w.events[1 : len(w.events)-1] {
		c.event(event)
	}
	c.end(w.events[len(w.events)-1])
	c.turns()
	return c.faults
}

func (c *streamChecker) fault(format string, arguments ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, arguments...))
}

// begin checks the first event, and compares the calls that it lists with those of the batch.
func (c *streamChecker) begin(event tool.Event) {
	want := tool.BatchStarted
	if c.before != nil {
		want = tool.BatchResumed
	}
	if event.Type != want {
		c.fault("it begins with %s", event.Type)
	}
	c.common(event)
	c.listed = event.Calls
	for _, call := range event.Calls {
		if call.Hidden || c.hidden(call.Tool) {
			c.fault("%s is listed, and hidden", call.CallID)
		}
		if c.calls[call.CallID] != nil || c.before[call.CallID] {
			c.fault("%s is listed twice, or has ended before", call.CallID)
		}
		c.calls[call.CallID] = &watchedCall{}
	}
	listed := slices.Clone(event.Calls)
	for _, record := range c.report.Records {
		if c.hidden(record.Function.Name) || c.before[record.CallID] {
			continue
		}
		at := slices.IndexFunc(listed, func(p tool.Planned) bool { return p.CallID == record.CallID && p.ID == record.ID })
		if at < 0 {
			c.fault("%s has ended, and is not listed in its place", record.CallID)
			continue
		}
		listed = listed[at+1:]
	}
	if c.report.Status == executor.Completed && len(listed) > 0 {
		c.fault("%d calls are listed that have no record", len(listed))
	}
}

// common checks the properties of every event, and reports whether they hold.
func (c *streamChecker) common(event tool.Event) bool {
	before := len(c.faults)
	ofCall := event.CallID != ""
	if event.Batch != c.report.ID || event.Session != c.report.Session.ID() || event.Time.IsZero() {
		c.fault("%s is another batch's, another session's, or has no time", event.Type)
	}
	if event.Hidden || event.Parent != "" || ofCall != (event.Tool != "") {
		c.fault("%s: a call is hidden, nested or of no tool", event.Type)
	}
	set := map[string]bool{"calls": event.Calls != nil, "emission": event.Emission != nil, "action": event.Action != nil, "record": event.Record != nil, "totals": event.Totals != nil, "call": ofCall}
	wanted := map[tool.EventType][]string{
		tool.BatchStarted: {"calls"}, tool.BatchResumed: {"calls"}, tool.BatchFinished: {"totals"}, tool.BatchPaused: {"totals"},
		tool.CallStarted: {"call"}, tool.CallWaiting: {"call", "action"}, tool.CallOutput: {"call", "emission"}, tool.CallFinished: {"call", "record"},
	}
	for what, is := range set {
		if want := slices.Contains(wanted[event.Type], what); is != want && what != "calls" || is && !want {
			c.fault("%s: %s is set or missing", event.Type, what)
		}
	}
	if event.Lost != 0 && event.Type != tool.CallOutput && event.Type != tool.CallFinished || event.Lost < 0 {
		c.fault("%s has lost %d", event.Type, event.Lost)
	}
	return len(c.faults) == before
}

// event checks one between the first and the last.
func (c *streamChecker) event(event tool.Event) {
	if !c.common(event) {
		return
	}
	call := c.calls[event.CallID]
	if call == nil {
		c.fault("%s of %q, which is not listed", event.Type, event.CallID)
		return
	}
	if call.finished || event.Time.Before(call.last) || event.Time.Before(c.events[0].Time) {
		c.fault("%s of %s comes after its end, or too early", event.Type, event.CallID)
	}
	call.last = event.Time
	switch event.Type {
	case tool.CallWaiting:
		if call.started || call.waited {
			c.fault("%s waits after it has started, or twice", event.CallID)
		}
		call.waited = true
	case tool.CallStarted:
		if call.started {
			c.fault("%s starts twice", event.CallID)
		}
		call.started = true
		c.checkOrder(event.CallID)
	case tool.CallOutput:
		c.speaks(event, call)
		c.heard(event, call)
	case tool.CallFinished:
		c.speaks(event, call)
		c.finishes(event, call)
	default:
		c.fault("%s between the first and the last", event.Type)
	}
}

// speaks checks that no other call is active.
func (c *streamChecker) speaks(event tool.Event, call *watchedCall) {
	if !call.started {
		c.fault("%s: %s before it has started", event.CallID, event.Type)
	}
	if !slices.Contains(c.spoken, event.CallID) {
		c.spoken = append(c.spoken, event.CallID)
	}
	if c.speaker != "" && c.speaker != event.CallID {
		c.fault("%s speaks before %s has finished", event.CallID, c.speaker)
	}
	c.speaker = event.CallID
}

// heard checks that the call made the emission, and that it is read neither twice nor too late.
func (c *streamChecker) heard(event tool.Event, call *watchedCall) {
	at := slices.IndexFunc(c.said(event.CallID)[call.heard:], func(s saying) bool { return reflect.DeepEqual(s.emission, *event.Emission) })
	if at < 0 {
		c.fault("%s did not say %q then", event.CallID, event.Emission.Text)
		return
	}
	c.left(event, call, at)
	call.heard++
}

// left checks the number of lost emissions in an event against the emissions missing just before it. Those that
// are not lost were replaced by a later one of their kind.
func (c *streamChecker) left(event tool.Event, call *watchedCall, count int) {
	said := c.said(event.CallID)[call.heard:]
	must := 0
	for i, s := range said[:count] {
		if !slices.ContainsFunc(said[i+1:], s.isReplacedBy) {
			must++
		}
	}
	if event.Lost < must || event.Lost > count {
		c.fault("%s: %d are lost, but %d to %d were left out", event.CallID, event.Lost, must, count)
	}
	call.heard += count
	call.lost += event.Lost
}

// isReplacedBy reports whether another emission of the call takes the place of this one.
func (s saying) isReplacedBy(later saying) bool {
	latest := s.emission.Type == tool.EmitProgress || s.emission.Partial
	return latest && later.emission.Type == s.emission.Type && later.emission.Partial == s.emission.Partial
}

func (c *streamChecker) finishes(event tool.Event, call *watchedCall) {
	c.left(event, call, len(c.said(event.CallID))-call.heard)
	call.finished, c.speaker = true, ""
	at := slices.IndexFunc(c.report.Records, func(r tool.Record) bool { return r.CallID == event.CallID })
	if at < 0 || !reflect.DeepEqual(c.report.Records[at], *event.Record) {
		c.fault("%s: the report does not have its record", event.CallID)
	}
}

// checkOrder checks at the start of a call that no barrier is passed in either direction. A client runs
// its calls when it is told of them, so that only the host's barriers hold these back.
func (c *streamChecker) checkOrder(id string) {
	own := slices.IndexFunc(c.listed, func(p tool.Planned) bool { return p.CallID == id })
	if !c.ran(id) {
		return
	}
	this := c.listed[own]
	for at, other := range c.listed {
		call := c.calls[other.CallID]
		switch {
		case at == own || !c.ran(other.CallID):
		case at < own && !call.finished && (c.barrier(other) || c.barrier(this) && !this.Client) && (!this.Client || !other.Client):
			c.fault("%s started before the end of %s", id, other.CallID)
		case at > own && call.started && c.barrier(this) && !this.Client:
			c.fault("%s started before %s", other.CallID, id)
		}
	}
}

func (c *streamChecker) barrier(call tool.Planned) bool { return c.writes(call.Tool) }

// ran reports whether a call was run by its tool.
func (c *streamChecker) ran(id string) bool {
	at := slices.IndexFunc(c.report.Records, func(r tool.Record) bool { return r.CallID == id })
	return at >= 0 && !c.report.Records[at].Skipped && !c.report.Records[at].Cached
}

// end checks the last event, and that nothing is missing.
func (c *streamChecker) end(event tool.Event) {
	want := tool.BatchFinished
	if c.report.Status == executor.RequiresAction {
		want = tool.BatchPaused
	}
	if event.Type != want {
		c.fault("it ends with %s", event.Type)
	}
	c.common(event)
	if event.Totals == nil || *event.Totals != c.report.Totals {
		c.fault("the totals are not the report's")
	}
	for _, record := range c.report.Records {
		if call := c.calls[record.CallID]; call != nil && !call.finished {
			c.fault("%s has no end", record.CallID)
		}
	}
	for id, call := range c.calls {
		if call.started && !call.finished || event.Time.Before(call.last) {
			c.fault("%s goes on", id)
		}
	}
}

// turns checks that who was heard first spoke first, as far as the times tell. Of calls that lost
// something it is not known which of their words was the first to be kept.
func (c *streamChecker) turns() {
	var soonest time.Time // by when one of those that spoke later was heard for certain
	for _, id := range slices.Backward(c.spoken) {
		call := c.calls[id]
		if call.lost > 0 {
			continue
		}
		from, to := c.firstWord(id, call)
		if !soonest.IsZero() && from.After(soonest) {
			c.fault("%s spoke before one that was heard earlier", id)
		}
		if soonest.IsZero() || to.Before(soonest) {
			soonest = to
		}
	}
}

// firstWord returns between which times a call was first heard.
func (c *streamChecker) firstWord(id string, call *watchedCall) (from, to time.Time) {
	if said := c.said(id); len(said) > 0 {
		return said[0].before, said[0].after
	}
	return call.last, c.events[len(c.events)-1].Time // its end, which was told some time before the batch's
}
