package ledger

import (
	"context"
	"slices"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// Event is an event of a run.
type Event struct {
	ID     int64 // 1 for the first
	Name   string
	IsLast bool // of a response
	Data   []byte
}

// AddEvents adds events to a run on which this process works, as [Ledger.ChangeRun] does. It fails with [ErrChanged] if
// the process does not work on it any more.
func (l *Ledger) AddEvents(ctx context.Context, tenant, run string, events []Event, first int64) error {
	events, err := l.sealEvents(events)
	if err != nil {
		return l.failure("add events", err)
	}
	bytes := 0
	for _, e := range events {
		bytes += len(e.Data)
	}
	return l.failure("add events", l.asWriter(ctx, (&Run{ID: run, Tenant: tenant}).waiting(bytes),
		func(ctx context.Context, tx *database.Tx, writer int64) error {
			var held bool
			err := tx.Row(ctx, "select exists (select 1 from runs where id = ? and writer = ?)", []any{run, writer}, &held)
			if err == nil && !held {
				err = ErrChanged
			}
			if err != nil {
				return err
			}
			return addEvents(ctx, tx, run, events, first)
		}))
}

// sealEvents returns events with the data that is kept.
func (l *Ledger) sealEvents(events []Event) ([]Event, error) {
	if l.options.RunKeys == nil {
		return events, nil
	}
	sealed := slices.Clone(events)
	for i := range sealed {
		data, err := l.seal(sealed[i].Data)
		if err != nil {
			return nil, err
		}
		sealed[i].Data = []byte(data)
	}
	return sealed, nil
}

func addEvents(ctx context.Context, tx *database.Tx, run string, events []Event, first int64) error {
	for _, e := range events {
		if _, err := tx.Exec(ctx, "insert into run_events (run, id, name, last, data) values (?, ?, ?, ?, ?) "+
			"on conflict do nothing", run, e.ID, e.Name, flag(e.IsLast), string(e.Data)); err != nil {
			return err
		}
	}
	if first <= 1 {
		return nil
	}
	_, err := tx.Exec(ctx, "delete from run_events where run = ? and id < ?", run, first)
	return err
}

// maxEvents is the number of events that are read at once.
const maxEvents = 256

// Events returns events of a run after one, in their order, at most a few hundred.
func (l *Ledger) Events(ctx context.Context, run string, after int64) (found []Event, err error) {
	err = l.database.View(ctx, func(tx *database.Tx) error {
		return tx.Rows(ctx, "select id, name, last, data from run_events where run = ? and id > ? order by id limit ?",
			[]any{run, after, maxEvents}, func(scan func(into ...any) error) error {
				var e Event
				var last int64
				var data string
				if err := scan(&e.ID, &e.Name, &last, &data); err != nil {
					return err
				}
				e.IsLast = last == 1
				e.Data, err = l.unseal(data)
				found = append(found, e)
				return err
			})
	})
	return found, l.failure("read events", err)
}
