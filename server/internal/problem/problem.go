// Package problem writes the errors of the server's HTTP interfaces in the form of RFC 9457.
package problem

import (
	"encoding/json"
	"net/http"
)

// ContentType is the media type of a problem.
const ContentType = "application/problem+json"

// Problem is an error as a remote caller sees it. It must hold no inner details: no paths of the host, no addresses,
// no text of an error that is not meant for the caller.
type Problem struct {
	// Type is a URI that identifies the kind of problem. Empty stands for about:blank: the status says it all.
	Type string `json:"type,omitempty"`
	// Title is the problem in a few words, the same for all problems of the type. Empty: the status's own words.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail names the mistake in this request, and what to send instead.
	Detail string `json:"detail,omitempty"`
	// ID finds the problem in the operator's log; empty if the caller can do without.
	ID string `json:"id,omitempty"`
}

// Write answers a request with a problem. Headers of w that are specific to it, such as Retry-After, must have been
// set.
func Write(w http.ResponseWriter, p Problem) {
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	body, err := json.Marshal(p)
	if err != nil { // no field can fail
		body = []byte("{}")
	}
	header := w.Header()
	header.Set("Content-Type", ContentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Del("Content-Length")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the caller may have gone
}
