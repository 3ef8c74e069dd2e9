package speech

import (
	"bytes"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// leastSize is about what a line needs to keep an output beside what is in it, so that very many
// small ones are bounded as well.
const leastSize = 256

// Size returns as how many bytes an emission counts: those of what is in it, and 256 at least.
func Size(emission *tool.Emission) int64 {
	return max(leastSize, int64(len(emission.Text))+int64(len(emission.Data))+int64(len(emission.MIMEType)))
}

// output keeps what a call says until its turn has come, if there is room.
func (l *Line) output(event tool.Event) {
	c := l.caller(&event)
	if c.end != nil || c.gone || event.Emission == nil {
		return
	}
	kept := c.replaces(event.Emission)
	if kept != nil && *kept != nil {
		l.replace(c, *kept)
	}
	said := output{time: event.Time, number: l.offered, bytes: Size(event.Emission)}
	if !l.admit(c, said.bytes) {
		c.lost++
		return
	}
	said.emission = clone(event.Emission)
	said.lost, c.lost = c.lost, 0
	if c.about == nil {
		about := event
		about.Emission = nil
		c.about = &about
	}
	link := c.said.push(said)
	if kept != nil {
		*kept = link
	}
	l.count(c, said.bytes)
	l.queue(c)
}

// clone returns an emission that shares nothing with the one it was given: that is its author's to
// change, and may be a small part of something large.
func clone(emission *tool.Emission) *tool.Emission {
	kept := *emission
	kept.Text, kept.MIMEType, kept.Data = strings.Clone(kept.Text), strings.Clone(kept.MIMEType), bytes.Clone(kept.Data)
	if kept.Fraction != nil {
		fraction := *kept.Fraction
		kept.Fraction = &fraction
	}
	return &kept
}

// admit makes room for an output of the call. Without room, it does so where the call would have no
// more than an equal part of what there is for all that have something waiting.
func (l *Line) admit(c *caller, size int64) bool {
	switch {
	case size > l.most:
		return false
	case l.held+size <= l.most:
		return true
	}
	among := l.largest.len()
	if c.bytes == 0 {
		among++
	}
	if c.bytes+size > l.most/int64(among) {
		return false
	}
	for l.held+size > l.most {
		l.drop(l.largest.first()) // which has more than an equal part
	}
	return true
}

// drop takes from a call what it said last.
func (l *Line) drop(c *caller) {
	last := c.said.last
	c.lost += last.value.lost + 1
	l.remove(c, last)
}

// replace removes an output of which there is a later one. That is no loss, but what was lost
// before it still is.
func (l *Line) replace(c *caller, old *link[output]) {
	if after := old.after; after != nil {
		after.value.lost += old.value.lost
	} else {
		c.lost += old.value.lost
	}
	l.remove(c, old)
}

// hear takes the next output of the call that has the floor.
func (l *Line) hear(c *caller) tool.Event {
	said := c.said.first.value
	l.remove(c, c.said.first)
	event := *c.about
	event.Time, event.Emission, event.Lost = said.time, said.emission, said.lost
	return event
}

func (l *Line) remove(c *caller, old *link[output]) {
	switch old {
	case c.progress:
		c.progress = nil
	case c.image:
		c.image = nil
	}
	c.said.remove(old)
	l.count(c, -old.value.bytes)
}

// count says that a call has more waiting, or less.
func (l *Line) count(c *caller, size int64) {
	l.held += size
	c.bytes += size
	l.largest.moved(c)
}
