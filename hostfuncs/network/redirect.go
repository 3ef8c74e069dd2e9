package network

import (
	"net/http"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/tool"
)

// isRedirect reports whether a response is a redirect to follow.
func isRedirect(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return answer.Header.Get("Location") != ""
	}
	return false
}

// follow prepares the next hop of a redirect, and checks it against the permission like the first.
func (e *exchange) follow(answer *http.Response) *hostfuncs.Error {
	text := answer.Header.Get("Location")
	to, err := e.hop.location.resolve(text)
	if err != nil {
		return ioProblem("the server sent an invalid redirect: "+err.Error(), err)
	}
	from := e.hop.location
	e.hop, e.from = e.hop.redirected(answer.StatusCode, to), from
	if from.Origin != to.Origin && e.client.maskText(text) != text {
		return e.deny(tool.Denial{Permission: "network", Rule: "the redirect would carry a secret to another origin"})
	}
	return e.authorize()
}

// redirected returns the hop after this one (Fetch, section 4.4). If the status requires it, a method other than GET or
// HEAD becomes GET. Headers that may be meant for this origin only are not sent to another one.
func (h hop) redirected(status int, to *location) hop {
	next := hop{h.method, to, h.header, h.body}
	becomesGet := status == http.StatusSeeOther && h.method != http.MethodGet && h.method != http.MethodHead ||
		(status == http.StatusMovedPermanently || status == http.StatusFound) && h.method == http.MethodPost
	if becomesGet {
		next.method, next.body = http.MethodGet, nil
		next.header = withoutBody(h.header)
	}
	if h.location.Origin != to.Origin {
		next.header = crossOrigin(next.header, !becomesGet)
	}
	return next
}
