package speech

import (
	"time"

	"github.com/caisson-run/caisson/tool"
)

// caller is a call and what it has said that was not taken yet.
type caller struct {
	index  int     // in the order in which calls came to be known
	behind *caller // the next in line
	heard  bool    // it is in line, or has been
	gone   bool    // its end was taken

	said chain[output]
	// progress and image are the latest of these that wait, which the next ones take the place of.
	progress, image *link[output]
	// about is what all of the call's outputs have in common; nil before the first.
	about *tool.Event
	end   *passed // nil until the call has finished
	// lost is how many outputs were lost behind all that wait.
	lost int

	bytes int64 // of the outputs
	place int   // among the largest
}

// output is something that a call has said.
type output struct {
	emission *tool.Emission
	time     time.Time
	number   uint64
	bytes    int64
	lost     int // outputs that were lost just before it
}

// next returns when that was offered which the call says next.
func (c *caller) next() (number uint64, ok bool) {
	switch {
	case c.said.first != nil:
		return c.said.first.value.number, true
	case c.end != nil:
		return c.end.number, true
	}
	return 0, false
}

// replaces returns where the call keeps the output that one of this kind takes the place of, or
// nil for kinds of which all are kept.
func (c *caller) replaces(emission *tool.Emission) **link[output] {
	switch {
	case emission.Type == tool.EmitProgress:
		return &c.progress
	case emission.Type == tool.EmitImage && emission.Partial:
		return &c.image
	}
	return nil
}
