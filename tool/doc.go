// Package tool holds the words that every other package shares: what a tool is
// called and described as ([Definition]), one request to run it ([Call],
// [Invocation]), what came of it ([Result], [Outcome], [Record]) and how it can
// fail ([Kind], [Error]).
//
// It depends on no other module than the standard library, so that a program can store, send or
// log tool calls without linking the runtime. All types are plain values: copying
// them is safe, and nothing here starts a goroutine or holds a lock.
//
// # Three channels
//
// A failure always belongs to exactly one reader, and its [Kind] says which:
// the tool failed and the model should read why; the call was wrong or denied and
// the caller should; or the host failed and the operator should, with an id.
package tool
