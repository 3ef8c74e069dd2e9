// Package speech puts the events of one batch into an order that people can follow: calls run in parallel and
// speak one at a time.
//
//	line := speech.New(1 << 20)
//	line.Offer(event) // as things happen
//	for {
//		event, ok := line.Next() // as they are shown
//		…
//	}
//
// A call's speech is its outputs and its end. Calls speak in the order in which each was first heard; while one
// speaks, from its first output until it has finished, the speech of other calls waits. All other events pass at once.
// These events and the speech of the active call keep the order in which they were offered. All events of hidden and
// nested calls are dropped, and events do not list these calls.
//
// Waiting outputs are bounded together. Only the latest progress of a call waits, and only its latest partial image.
// A later one is queued after all other outputs of the call, so that the outputs of a call are always shown in the
// order in which the call made them. An output without room is lost, unless its call's waiting outputs would take
// no more than an equal part of the room: then the call with the most waiting output, which has more than that, loses
// its latest one. The number of lost outputs is in the call's next event, which is its end at the latest.
//
// Events other than outputs are never lost: there are only a few of them per call.
package speech

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// Sequencer orders the events of one batch. It has no goroutines, locks or clock. Get one from [New]. It is not safe
// for concurrent use.
type Sequencer struct {
	limit, held int64  // bytes of outputs
	offered     uint64 // events so far, hidden ones aside
	closed      bool

	passing []numbered // events that are neither an output nor the end of a call
	callers map[string]*callState
	queue   []*callState // calls that were heard, in that order; the first is active
}

// numbered is an event with its number in the order in which events were offered.
type numbered struct {
	event  *tool.Event
	number uint64
}

// callState is a call with its speech that was not taken yet.
type callState struct {
	index int // in the order in which the sequencer first got an event of each call
	heard bool
	gone  bool        // its end was taken
	about *tool.Event // the members that all of its outputs share; nil before the first
	said  []output
	end   numbered // without an event until the call has finished
	lost  int      // outputs that were lost after the last waiting one
	bytes int64    // of its waiting outputs
}

type output struct {
	emission *tool.Emission
	time     time.Time
	number   uint64
	lost     int // outputs that were lost just before it
}

// New returns a sequencer in which outputs of at most limit bytes may wait, as [Size] counts them.
func New(limit int64) *Sequencer { return &Sequencer{limit: limit, callers: map[string]*callState{}} }

// Offer adds an event. An emission is copied; nothing else that the event points to may change afterwards. After
// [Sequencer.Close], and after the event with which a batch ends or pauses, Offer does nothing.
func (l *Sequencer) Offer(event tool.Event) {
	if l.closed || event.Hidden || event.Parent != "" {
		return
	}
	l.offered++
	switch event.Type {
	case tool.CallOutput:
		l.output(event)
	case tool.CallFinished:
		if c := l.callState(event.CallID); c.end.event == nil && !c.gone {
			end := event
			c.end = numbered{&end, l.offered}
			l.enqueue(c)
		}
	default:
		passing := event
		if slices.ContainsFunc(event.Calls, isHidden) {
			passing.Calls = slices.DeleteFunc(slices.Clone(event.Calls), isHidden)
		}
		l.passing = append(l.passing, numbered{&passing, l.offered})
		l.closed = event.Type == tool.BatchFinished || event.Type == tool.BatchPaused
	}
}

func isHidden(call tool.Planned) bool { return call.Hidden }

// Close ends the sequence. Waiting events can still be taken: an unfinished call no longer delays other calls.
func (l *Sequencer) Close() { l.closed = true }

// Next removes and returns the next event, or false if none can be shown yet.
func (l *Sequencer) Next() (tool.Event, bool) {
	number, speaks := l.speaks()
	if len(l.passing) > 0 && (!speaks || l.passing[0].number < number) {
		return *pop(&l.passing).event, true
	}
	if !speaks {
		return tool.Event{}, false
	}
	c := l.queue[0]
	if len(c.said) > 0 {
		said, event := pop(&c.said), *c.about
		l.count(c, -Size(said.emission))
		event.Time, event.Emission, event.Lost = said.time, said.emission, said.lost
		return event, true
	}
	event := *c.end.event
	event.Lost = c.lost
	pop(&l.queue)
	*c = callState{index: c.index, heard: true, gone: true}
	return event, true
}

// Ready reports whether there is something to take.
func (l *Sequencer) Ready() bool {
	_, speaks := l.speaks()
	return speaks || len(l.passing) > 0
}

// speaks returns the number of the next event of the call that is active, or false if there is none.
func (l *Sequencer) speaks() (number uint64, ok bool) {
	for len(l.queue) > 0 {
		switch c := l.queue[0]; {
		case len(c.said) > 0:
			return c.said[0].number, true
		case c.end.event != nil:
			return c.end.number, true
		case !l.closed:
			return 0, false
		}
		pop(&l.queue) // it will never finish
	}
	return 0, false
}

// pop removes the first element, so that it can be collected. A list that becomes empty keeps its capacity.
func pop[E any](list *[]E) E {
	first := (*list)[0]
	clear((*list)[:1])
	if len(*list) == 1 {
		*list = (*list)[:0]
	} else {
		*list = (*list)[1:]
	}
	return first
}

func (l *Sequencer) callState(id string) *callState {
	c := l.callers[id]
	if c == nil {
		c = &callState{index: len(l.callers)}
		l.callers[id] = c
	}
	return c
}

// enqueue queues a call that is heard for the first time.
func (l *Sequencer) enqueue(c *callState) {
	if !c.heard {
		c.heard = true
		l.queue = append(l.queue, c)
	}
}

// minSize is roughly the overhead of an output, so that very many small ones are bounded as well.
const minSize = 256

// Size returns how many bytes an emission counts as: those of its content, and at least 256.
func Size(emission *tool.Emission) int64 {
	return max(minSize, int64(len(emission.Text))+int64(len(emission.Data))+int64(len(emission.MIMEType)))
}

// output keeps an output until its call's turn, if there is room.
func (l *Sequencer) output(event tool.Event) {
	c := l.callState(event.CallID)
	if c.end.event != nil || c.gone || event.Emission == nil {
		return
	}
	if next := event.Emission; next.Type == tool.EmitProgress || next.Type == tool.EmitImage && next.Partial {
		l.replace(c, next)
	}
	if !l.admit(c, Size(event.Emission)) {
		c.lost++
		return
	}
	c.said = append(c.said, output{clone(event.Emission), event.Time, l.offered, c.lost})
	c.lost = 0
	l.count(c, Size(event.Emission))
	l.enqueue(c)
	if c.about == nil {
		about := event
		about.Emission = nil
		c.about = &about
	}
}

// replace removes the waiting output that the call's next progress or partial image replaces. That is not a loss.
func (l *Sequencer) replace(c *callState, next *tool.Emission) {
	for i, said := range slices.Backward(c.said) {
		if old := said.emission; old.Type == next.Type && (old.Type == tool.EmitProgress || old.Partial) {
			l.remove(c, i)
			return
		}
	}
}

// clone returns a deep copy: the author may change the original, which may be a small part of something large.
func clone(emission *tool.Emission) *tool.Emission {
	kept := *emission
	kept.Text, kept.MIMEType, kept.Data = strings.Clone(kept.Text), strings.Clone(kept.MIMEType), bytes.Clone(kept.Data)
	if kept.Fraction != nil {
		fraction := *kept.Fraction
		kept.Fraction = &fraction
	}
	return &kept
}

// admit makes room for an output of the call. If the line is full, it does so only if the call would then have no more
// than an equal share among all calls with waiting outputs.
func (l *Sequencer) admit(c *callState, size int64) bool {
	if size > l.limit {
		return false
	}
	if l.held+size <= l.limit {
		return true
	}
	_, among := l.largest()
	if c.bytes == 0 {
		among++
	}
	if c.bytes+size > l.limit/among {
		return false
	}
	for l.held+size > l.limit {
		largest, _ := l.largest() // which has more than an equal part
		largest.lost++
		l.remove(largest, len(largest.said)-1)
	}
	return true
}

// largest returns the call with the most waiting output, the newest of several, and how many calls have any.
func (l *Sequencer) largest() (largest *callState, among int64) {
	for _, c := range l.queue {
		if c.bytes == 0 {
			continue
		}
		among++
		if largest == nil || c.bytes > largest.bytes || c.bytes == largest.bytes && c.index > largest.index {
			largest = c
		}
	}
	return largest, among
}

// remove removes an output. Outputs that were lost before it are still counted.
func (l *Sequencer) remove(c *callState, i int) {
	old := c.said[i]
	if i+1 < len(c.said) {
		c.said[i+1].lost += old.lost
	} else {
		c.lost += old.lost
	}
	c.said = slices.Delete(c.said, i, i+1)
	l.count(c, -Size(old.emission))
}

// count adjusts the size of a call's waiting outputs.
func (l *Sequencer) count(c *callState, size int64) {
	l.held += size
	c.bytes += size
}
