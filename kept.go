package caisson

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/tool"
)

// KeptCall is an ended call whose record is kept, as [Options.StateDir] says.
type KeptCall struct {
	Time   time.Time       // when it ended
	Record json.RawMessage // the record's JSON, as it was kept
	Whole  *tool.Result    // the result before parts of it were cut; nil if none was
}

// CallFilter says which kept calls are asked for. The zero value asks for the newest.
type CallFilter struct {
	Tool, User, Session string
	Outcome             string // "success", or the kind of a failure
	Denied              bool   // only calls that were denied something
	From, To            time.Time
	Words               string // all of which the arguments or the result have
	Limit               int    // at most 1,000; zero means 50
	Cursor              string // of the page before
}

// KeptCalls returns the kept calls of a tenant that a filter asks for, newest first, and no more once their
// records have over 4 MiB. The cursor asks for the next page, and is empty if there is none. It fails with
// [ErrFilter] if the filter is wrong.
func (h *Host) KeptCalls(
	ctx context.Context, tenant string, f CallFilter,
) (calls []KeptCall, cursor string, err error) {
	kept, err := h.recorder.open(ctx)
	if err != nil {
		return nil, "", &Error{"records", ErrRecords, err}
	}
	if kept == nil {
		return nil, "", nil
	}
	page, err := kept.Calls(ctx, ledger.Filter{
		Tenant: &tenant, Tool: f.Tool, User: f.User, Session: f.Session, Outcome: f.Outcome, Denied: f.Denied,
		From: f.From, To: f.To, Words: f.Words, Limit: f.Limit, Cursor: f.Cursor,
	})
	switch {
	case errors.Is(err, ledger.ErrFilter):
		return nil, "", &Error{"records", ErrFilter, err}
	case err != nil:
		return nil, "", &Error{"records", ErrRecords, err}
	}
	return keptCalls(page.Entries), page.Cursor, nil
}

// KeptCall returns a tenant's call by its whole call id, and the calls that its tool made, oldest first. It fails with
// [ErrNotKept] if it has no record, or belongs to another tenant.
func (h *Host) KeptCall(ctx context.Context, tenant, id string) (call KeptCall, made []KeptCall, err error) {
	fail := func(err error) (KeptCall, []KeptCall, error) {
		kind := ErrRecords
		if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrID) || errors.Is(err, ledger.ErrAmbiguous) {
			kind = ErrNotKept
		}
		return KeptCall{}, nil, &Error{"records", kind, err}
	}
	kept, err := h.recorder.open(ctx)
	if err == nil && kept == nil {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return fail(err)
	}
	found, err := kept.Find(ctx, id)
	if err != nil {
		return fail(err)
	}
	if found.Record.CallID != id || found.Tenant != tenant {
		return fail(ledger.ErrNotFound)
	}
	by, err := kept.Calls(ctx, ledger.Filter{Tenant: &tenant, Parent: id, Limit: 1000})
	if err != nil {
		return fail(err)
	}
	return keptCalls([]ledger.Entry{found})[0], keptCalls(by.Entries), nil
}

func keptCalls(entries []ledger.Entry) []KeptCall {
	calls := make([]KeptCall, len(entries))
	for i, e := range entries {
		calls[i] = KeptCall{e.Time, e.Wire, e.Whole}
	}
	return calls
}
