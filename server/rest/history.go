package rest

import (
	"encoding/json"
	"errors"
	"net/http"
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
	limit, err := integer(x.query, "limit", 50, maxListed)
	if err != nil {
		return reply{}, err
	}
	found, err := x.api.host.KeptCalls(x.request.Context(), x.caller.Tenant, int(limit))
	if err != nil {
		return reply{}, err
	}
	return answer(http.StatusOK, struct {
		Calls []keptCall `json:"calls"`
	}{shownCalls(found)})
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
