// Package speech puts the events of one batch into an order that people can follow: calls run at
// the same time, and speak one after the other.
//
//	line := speech.New(1 << 20)
//	line.Offer(event) // as things happen
//	for {
//		event, ok := line.Take() // as they are shown
//		…
//	}
//
// What a call says, which is its output and how it ended, is its speech. Calls speak in the order
// in which each was first heard; while one speaks, from its first output until it has finished,
// the others' speech waits. Everything else passes at once. What passes, and the speech of the one
// that speaks, keep the order in which they were offered. Hidden calls, and calls that calls made,
// are not heard at all, and are not among the calls that an event lists.
//
// Outputs that wait are bounded together. Of a call's progress only the latest waits, and of its
// images that are not done yet as well: it takes the place behind all that the call has said
// since, so that what is shown of a call is always in the order in which the call said it. Where
// there is no room for an output, it is lost, unless its call would have no more waiting than an
// equal part of the room: then the call that has most waiting, which is more than that, loses what
// it said last. How many outputs were lost is told with the call's next event, which is its end at
// the latest.
//
// Everything that is not an output is kept: a batch has a few of each for each call.
//
// A [Line] is a plain value without goroutines, locks or a clock: whoever uses it has these.
package speech
