package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/tool"
)

// keptCall is a call as the host keeps it.
type keptCall struct {
	Time   time.Time       `json:"time"`
	Record json.RawMessage `json:"record"`
}

// explainedCall is one with all that is known of it.
type explainedCall struct {
	keptCall
	// Whole is the result before parts of it were cut; null if nothing was.
	Whole *tool.Result `json:"whole"`
	// Made are the calls that the tool made, oldest first.
	Made []keptCall `json:"made"`
}

// maxListed bounds lists of calls and of runs. A record may have tens of kilobytes, and can have megabytes.
const maxListed = 100

func (x *exchange) listCalls() (reply, error) {
	f, err := x.callFilter()
	if err != nil {
		return reply{}, err
	}
	listed := struct {
		Calls []keptCall `json:"calls"`
		Next  *string    `json:"next_cursor"`
	}{Calls: []keptCall{}}
	if f.Limit == 0 {
		return answer(http.StatusOK, listed)
	}
	found, next, err := x.api.host.KeptCalls(x.request.Context(), x.caller.Tenant, f)
	if errors.Is(err, caisson.ErrFilter) {
		return reply{}, refuse(http.StatusBadRequest, "the cursor is not one of this list, or words has none or more than "+
			"16, or the server keeps no index of words")
	}
	if err != nil {
		return reply{}, err
	}
	if listed.Calls = shownCalls(found); next != "" {
		listed.Next = &next
	}
	return answer(http.StatusOK, listed)
}

// callFilter reads which calls are asked for.
func (x *exchange) callFilter() (f caisson.CallFilter, err error) {
	f = caisson.CallFilter{
		Tool: x.query.Get("tool"), User: x.query.Get("user"), Session: x.query.Get("session"), Words: x.query.Get("words"),
		Outcome: x.query.Get("outcome"), Cursor: x.query.Get("cursor"),
	}
	kinds := append([]tool.Kind{"success"}, tool.Kinds()...)
	if f.Outcome != "" && !slices.Contains(kinds, tool.Kind(f.Outcome)) {
		return f, refuse(http.StatusBadRequest, "outcome must be one of %s", joined(kinds))
	}
	if f.Denied, err = boolean(x.query, "denied"); err != nil {
		return f, err
	}
	for name, to := range map[string]*time.Time{"from": &f.From, "to": &f.To} {
		if given := x.query.Get(name); given != "" {
			if *to, err = time.Parse(time.RFC3339, given); err != nil {
				return f, refuse(http.StatusBadRequest, "%s must be a time such as 2026-11-29T12:00:00Z", name)
			}
			if to.IsZero() { // which would count as none
				*to = time.Unix(0, 0)
			}
		}
	}
	limit, err := integer(x.query, "limit", 50, maxListed)
	f.Limit = int(limit)
	return f, err
}

func shownCalls(found []caisson.KeptCall) []keptCall {
	shown := []keptCall{}
	for _, c := range found {
		shown = append(shown, keptCall{c.Time, c.Record})
	}
	return shown
}

func (x *exchange) getCall() (reply, error) {
	found, made, err := x.api.host.KeptCall(x.request.Context(), x.caller.Tenant, x.request.PathValue("call_id"))
	if errors.Is(err, caisson.ErrNotKept) {
		return reply{},
			refuse(http.StatusNotFound, "there is no record of such a call; only the newest are kept, if the server keeps any")
	}
	if err != nil {
		return reply{}, err
	}
	return answer(http.StatusOK, explainedCall{keptCall{found.Time, found.Record}, found.Whole, shownCalls(made)})
}
