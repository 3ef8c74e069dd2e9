// Package tool defines the types that all other packages share: the description of a tool ([Definition]), a request to
// run it ([Call], [Invocation]), its result ([Result], [Outcome], [Record]) and its failures ([Kind], [Error]).
//
// Outside of the standard library, it depends only on a JSON parser of this module, so that a program can store, send
// or log tool calls without linking the runtime. All types are plain values that are safe to copy. Nothing here starts
// a goroutine or holds a lock.
//
// # Who reads a failure
//
// Every failure is meant for exactly one reader, which its [Kind] determines: the model, if the tool
// failed; the caller, if the call was invalid or denied; or the operator, if the host failed.
package tool
