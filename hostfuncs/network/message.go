package network

import "time"

// Request is what a guest asks for. Nothing in it is trusted.
type Request struct {
	Method string // in upper case; empty: GET. CONNECT and TRACE are refused
	URL    string // absolute
	// Headers go along, but for those that say how a message travels, which are refused,
	// and Accept-Encoding, which is the host's.
	Headers [][2]string
	Body    []byte // not to be changed before the answer is there
	// Timeout ends the request before its context does. Zero leaves it to the context; if
	// that has no deadline either, it is [DefaultTimeout].
	Timeout time.Duration
}

// Response is what the last of the servers answered, without the secrets' values.
type Response struct {
	Status int
	URL    string // what answered, after redirects; without user info and fragment
	// Headers are in the order of their names, each in its canonical form. All text is valid
	// UTF-8 without hidden characters. Headers between two hops are left out.
	Headers [][2]string
	Body    []byte // decompressed
	// Truncated says that the body went on beyond the session's [Limits].
	Truncated bool
}
