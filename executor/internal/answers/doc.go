// Package answers keeps what read-only calls came to, for as long as that may be given again.
//
// What is asked is a [Question]. [Cache.Do] answers it: with an answer that is kept, with the
// one that another goroutine is finding (a flight, which several may wait for), or by asking.
// An answer is kept until its time is over, until the room is needed for others, or until a
// barrier forgets it.
//
// # Domains and barriers
//
// A question names the domains that its answer depends on. [Cache.Barrier] says that what is
// in a domain may change from now until its end. An answer is kept only if no barrier in any
// of its domains began, was under way or ended since it was asked for, and every barrier
// forgets what is kept. A flight is joined only if no barrier in its domains began or ended
// since it began. So whoever asks after the end of a barrier never gets an answer that was
// looked for before that end; whoever waited already may.
//
// Barriers in one domain may overlap. A domain that no answer, flight, [Generation] or
// barrier refers to takes no memory once the garbage collector has seen that.
//
// # Waiting
//
// Only [Cache.Do] waits, and only for flights. An ask that leads to another Do may come to
// wait for itself, or for a flight that waits for it. What is asked on behalf of a flight
// uses [Cache.Get], [Cache.Began] and [Cache.Put] instead.
package answers
