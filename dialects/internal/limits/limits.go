// Package limits has the limits on input from providers and clients that all dialects share.
package limits

const (
	Calls     = 4096    // calls in one response, and answers in one document
	Parts     = 4096    // parts of one result, in a document of answers
	Arguments = 1 << 20 // bytes of one call's arguments
)
