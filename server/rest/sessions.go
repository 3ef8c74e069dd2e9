package rest

import "net/http"

const noSession = "the token has no such session"

func (x *exchange) deleteSession() (reply, error) {
	if !x.api.options.Sessions.End(x.request.Context(), x.caller, x.request.PathValue("session_id")) {
		return reply{}, refuse(http.StatusNotFound, noSession)
	}
	return reply{status: http.StatusNoContent}, nil
}

// maxPage is the longest page of a result.
const maxPage = 1 << 20

func (x *exchange) getOutput() (reply, error) {
	from, err := integer(x.query, "from", 0, 1<<40)
	if err != nil {
		return reply{}, err
	}
	most, err := integer(x.query, "most", 32<<10, maxPage)
	if err != nil {
		return reply{}, err
	}
	session, done, err := x.api.options.Sessions.Find(x.request.Context(), x.caller, x.request.PathValue("session_id"))
	if err != nil {
		return reply{}, sessionRefusal(err)
	}
	if session == nil {
		return reply{}, refuse(http.StatusNotFound, noSession)
	}
	defer done()
	page, err := session.Page(x.request.PathValue("reference"), from, most)
	if err != nil {
		return reply{}, refuse(http.StatusNotFound, "%s", err)
	}
	return answer(http.StatusOK, page)
}
