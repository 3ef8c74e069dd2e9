package network

import (
	"net/http"

	"github.com/caisson-run/caisson/tool"
)

// isRedirect reports whether an answer leads elsewhere.
func isRedirect(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return answer.Header.Get("Location") != ""
	}
	return false
}

// follow makes the next hop of a redirect, and asks the permission about it as about the
// first.
func (e *exchange) follow(answer *http.Response) *Error {
	text := answer.Header.Get("Location")
	to, err := e.hop.location.resolve(text)
	if err != nil {
		return &Error{Op: "request", Kind: ErrIO, Message: "the server redirects elsewhere, and " + err.Error(), cause: err}
	}
	from := e.hop.location
	e.hop, e.from = e.hop.redirected(answer.StatusCode, to), from
	if !from.sameOrigin(to) && e.client.maskText(text) != text {
		return e.deny(tool.Denial{Permission: "network", Rule: "the redirect would carry a secret to another origin"})
	}
	return e.authorize()
}

// redirected returns the hop after this one (Fetch, section 4.4): what is not GET or HEAD
// becomes GET where the status says so, and another origin gets none of the headers that
// may be meant for this one.
func (h hop) redirected(status int, to *location) hop {
	next := hop{h.method, to, h.header, h.body}
	becomesGet := status == http.StatusSeeOther && h.method != http.MethodGet && h.method != http.MethodHead ||
		(status == http.StatusMovedPermanently || status == http.StatusFound) && h.method == http.MethodPost
	if becomesGet {
		next.method, next.body = http.MethodGet, nil
		next.header = withoutBody(h.header)
	}
	if !h.location.sameOrigin(to) {
		next.header = crossOrigin(next.header, !becomesGet)
	}
	return next
}
