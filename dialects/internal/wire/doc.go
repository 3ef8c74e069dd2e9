// Package wire holds what the dialects of providers that send arguments as JSON objects share:
// reading and writing such documents, and the pieces of a stream.
package wire
