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

// maxReading is how many requests of a tenant read records at a time. Others wait: reading megabytes takes a second.
const maxReading = 2

// reads waits until the caller's tenant may read records. done must be called when they have been read.
func (x *exchange) reads() (done func(), err error) {
	kept, _ := x.api.reading.LoadOrStore(x.caller.Tenant, make(chan struct{}, maxReading))
	slots := kept.(chan struct{})
	ctx := x.request.Context()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (x *exchange) listCalls() (reply, error) {
	query, err := x.query("limit")
	if err != nil {
		return reply{}, err
	}
	limit, err := integer(query, "limit", 50, maxListed)
	if err != nil {
		return reply{}, err
	}
	done, err := x.reads()
	if err != nil {
		return reply{}, err
	}
	defer done()
	found, err := x.api.host.KeptCalls(x.caller.Tenant, int(limit))
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
	done, err := x.reads()
	if err != nil {
		return reply{}, err
	}
	defer done()
	found, made, err := x.api.host.KeptCall(x.caller.Tenant, x.request.PathValue("call_id"))
	if errors.Is(err, caisson.ErrNotKept) {
		return reply{}, refuse(http.StatusNotFound, "there is no record of such a call; only the newest are kept, if the server keeps any")
	}
	if err != nil {
		return reply{}, err
	}
	return answer(http.StatusOK, explainedCall{keptCall{found.Time, found.Record}, found.Whole, shownCalls(made)})
}
