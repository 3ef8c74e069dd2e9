package caisson

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/tool"
)

// KeptCall is an ended call whose record is in [Options.StateDir].
type KeptCall struct {
	Time   time.Time       // when it ended
	Record json.RawMessage // the record's JSON, as it was kept
	Whole  *tool.Result    // the result before parts of it were cut; nil if none was
}

// KeptCalls returns the newest kept calls of a tenant, newest first: at most limit, and no more once their
// records have over 4 MiB. It ends with ctx. All tenants share the space for records evenly: tenants that need more
// use the space that other tenants do not need.
func (h *Host) KeptCalls(ctx context.Context, tenant string, limit int) ([]KeptCall, error) {
	l := h.ledger
	if l.folder == "" {
		return nil, nil
	}
	l.mu.Lock()
	known := l.tenants
	l.mu.Unlock()
	found, seen, err := l.folder.Of(ctx, tenant, limit, known)
	if err != nil {
		return nil, &Error{"records", ErrRecords, err}
	}
	l.mu.Lock()
	l.tenants = seen
	l.mu.Unlock()
	return keptCalls(found), nil
}

// KeptCall returns a tenant's call by its whole call id, and the calls that its tool made, oldest first. It fails with
// [ErrNotKept] if it has no record, or belongs to another tenant.
func (h *Host) KeptCall(ctx context.Context, tenant, id string) (call KeptCall, made []KeptCall, err error) {
	fail := func(err error) (KeptCall, []KeptCall, error) {
		kind := ErrRecords
		if errors.Is(err, records.ErrNotFound) || errors.Is(err, records.ErrID) || errors.Is(err, records.ErrAmbiguous) {
			kind = ErrNotKept
		}
		return KeptCall{}, nil, &Error{"records", kind, err}
	}
	if h.ledger.folder == "" {
		return fail(records.ErrNotFound)
	}
	found, err := h.ledger.folder.Find(id)
	if err != nil {
		return fail(err)
	}
	if found.Record.CallID != id || found.Tenant != tenant {
		return fail(records.ErrNotFound)
	}
	by, err := h.ledger.folder.MadeBy(ctx, found)
	if err != nil {
		return fail(err)
	}
	return keptCalls([]records.Entry{found})[0], keptCalls(by), nil
}

func keptCalls(entries []records.Entry) []KeptCall {
	calls := make([]KeptCall, len(entries))
	for i, e := range entries {
		calls[i] = KeptCall{e.Time, e.Wire, e.Whole}
	}
	return calls
}
