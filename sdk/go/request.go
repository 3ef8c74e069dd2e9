package caisson

import (
	"strings"
	"time"
)

// Request is an HTTP request. The host puts in the secrets that belong to its URL.
type Request struct {
	Method string // such as GET; empty: GET
	URL    string // absolute, http or https
	// Headers are pairs of name and value, in order.
	Headers [][2]string
	Body    []byte
	// Timeout bounds the whole request, redirects and all. The host counts milliseconds; what
	// is left of one counts as one. Zero: as long as the call may take.
	Timeout time.Duration
}

// Response is what came back. A status such as 404 is a response, not an error.
type Response struct {
	Status int
	URL    string // where the response came from, after redirects
	// Headers are pairs of name and value, in order.
	Headers [][2]string
	Body    []byte
	// Truncated tells that the body was longer than the call's limit, which cut it.
	Truncated bool
}

// Header returns the first value of the header with this name, in whatever case, or "".
func (r *Response) Header(name string) string {
	for _, header := range r.Headers {
		if strings.EqualFold(header[0], name) {
			return header[1]
		}
	}
	return ""
}

// Result is what became of one of several requests: either Response or Err is nil.
type Result struct {
	Response *Response
	Err      error
}
