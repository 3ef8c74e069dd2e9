package rest

import (
	"net/http"
	"net/url"
	"strconv"
)

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
	query, err := x.query("from", "most")
	if err != nil {
		return reply{}, err
	}
	from, err := integer(query, "from", 0, 1<<40)
	if err != nil {
		return reply{}, err
	}
	most, err := integer(query, "most", 32<<10, maxPage)
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

// integer returns a parameter from 0 to most, or the fallback without it.
func integer(query url.Values, name string, fallback, most int64) (int64, error) {
	given := query.Get(name)
	if given == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(given, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, refuse(http.StatusBadRequest, "%s must be an integer from 0 to %d", name, most)
	}
	return n, nil
}
