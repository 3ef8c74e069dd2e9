// Package wire holds what the dialects share: reading and writing documents, what these answer, and
// the pieces of a stream.
package wire
