package speech

import (
	"slices"

	"github.com/caisson-run/caisson/tool"
)

// Line orders the events of one batch. Get one from [New]. It must not be used by several
// goroutines at a time. Offering and taking take amortised logarithmic time in the number of calls.
type Line struct {
	most, held int64  // bytes of outputs
	offered    uint64 // events so far, hidden ones aside
	closed     bool

	passing chain[passed]
	callers map[string]*caller
	// first and last are the ends of the line of calls that were heard. The first has the floor.
	first, last *caller
	largest     largest // calls that have outputs waiting
}

// passed is an event that waits for nobody's speech.
type passed struct {
	event  tool.Event
	number uint64
}

// New returns a line in which outputs of so many bytes may wait, as [Size] counts them.
func New(most int64) *Line { return &Line{most: most, callers: map[string]*caller{}} }

// Offer adds what has happened. An emission is copied; what else the event points to must not change
// from then on. After [Line.Close], and after the event with which a batch ends or pauses, it does
// nothing.
func (l *Line) Offer(event tool.Event) {
	if l.closed || event.Hidden || event.Parent != "" {
		return
	}
	l.offered++
	switch event.Type {
	case tool.CallOutput:
		l.output(event)
	case tool.CallFinished:
		l.finish(event)
	case tool.BatchFinished, tool.BatchPaused:
		l.pass(event)
		l.closed = true
	default:
		l.pass(event)
	}
}

// Close says that nothing more comes. What waits can still be taken: a call that has not finished
// keeps nobody waiting.
func (l *Line) Close() { l.closed = true }

// Take removes the next event and returns it, or false where nothing can be said yet.
func (l *Line) Take() (tool.Event, bool) {
	number, speaks := l.speaks()
	if next := l.passing.first; next != nil && (!speaks || next.value.number < number) {
		return l.passing.pop().event, true
	}
	if !speaks {
		return tool.Event{}, false
	}
	if l.first.said.first == nil {
		return l.leave(l.first), true
	}
	return l.hear(l.first), true
}

// Ready reports whether there is something to take.
func (l *Line) Ready() bool {
	if l.passing.first != nil {
		return true
	}
	_, speaks := l.speaks()
	return speaks
}

// Held returns how many bytes of outputs wait, as [Size] counts them. It is never more than [New]
// was given.
func (l *Line) Held() int64 { return l.held }

// pass adds an event that waits for nobody.
func (l *Line) pass(event tool.Event) {
	if slices.ContainsFunc(event.Calls, isHidden) {
		event.Calls = slices.DeleteFunc(slices.Clone(event.Calls), isHidden)
	}
	l.passing.push(passed{event, l.offered})
}

func isHidden(call tool.Planned) bool { return call.Hidden }

// speaks returns when that was offered which the call that has the floor says next, or false where
// it says nothing.
func (l *Line) speaks() (number uint64, ok bool) {
	for l.first != nil {
		if number, ok = l.first.next(); ok || !l.closed {
			return number, ok
		}
		l.first = l.first.behind // it will never finish
	}
	return 0, false
}

// finish keeps a call's end until its turn has come.
func (l *Line) finish(event tool.Event) {
	c := l.caller(&event)
	if c.end != nil || c.gone {
		return
	}
	c.end = &passed{event, l.offered}
	l.queue(c)
}

// caller returns the call that an event is about.
func (l *Line) caller(event *tool.Event) *caller {
	c := l.callers[event.CallID]
	if c == nil {
		c = &caller{index: len(l.callers), place: nowhere}
		l.callers[event.CallID] = c
	}
	return c
}

// queue puts a call that is heard for the first time behind the others.
func (l *Line) queue(c *caller) {
	if c.heard {
		return
	}
	c.heard = true
	if l.first == nil {
		l.first = c
	} else {
		l.last.behind = c
	}
	l.last = c
}

// leave takes the end of the call that has the floor, which is the next one's then.
func (l *Line) leave(c *caller) tool.Event {
	event := c.end.event
	event.Lost = c.lost
	l.first = c.behind
	*c = caller{index: c.index, place: nowhere, heard: true, gone: true}
	return event
}
