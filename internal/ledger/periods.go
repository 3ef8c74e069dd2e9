package ledger

import (
	"context"
	"time"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// Calls are found by words in the order of their rows, which is about the order of time. For each period, a table has
// the first and the last row of the calls that ended in it, so that a search passes over few calls of other times.

// periodLength is the length of a period in milliseconds.
const periodLength = int64(10 * time.Minute / time.Millisecond)

// span is a range of ids of rows. The zero value has none.
type span struct{ first, last int64 }

// with returns the span with one more id.
func (s span) with(id int64) span {
	if s == (span{}) {
		return span{id, id}
	}
	return span{min(s.first, id), max(s.last, id)}
}

// addPeriods adds the ids of new rows to their periods. Each chain has its own rows, so that processes do not wait for
// each other.
func (l *Ledger) addPeriods(ctx context.Context, tx *database.Tx, periods map[int64]span) error {
	for period, s := range periods {
		_, err := tx.Exec(ctx, l.database.Only(
			"insert into periods (chain, period, first, last) values (?, ?, ?, ?) on conflict (chain, period) do update "+
				"set first = min(periods.first, excluded.first), last = max(periods.last, excluded.last)",
			"insert into periods (chain, period, first, last) values (?, ?, ?, ?) on conflict (chain, period) do update "+
				"set first = least(periods.first, excluded.first), last = greatest(periods.last, excluded.last)"),
			l.chain, period, s.first, s.last)
		if err != nil {
			return err
		}
	}
	return nil
}

// periodSpan returns the ids between which the rows are of all calls that ended in the time of the filter.
func (s *search) periodSpan(ctx context.Context) (found span, err error) {
	query, arguments := "select coalesce(min(first), 0), coalesce(max(last), 0) from periods where true", []any(nil)
	if !s.filter.From.IsZero() {
		query, arguments = query+" and period >= ?", append(arguments, floorDiv(s.filter.From.UnixMilli(), periodLength))
	}
	if !s.filter.To.IsZero() {
		query, arguments = query+" and period <= ?", append(arguments, floorDiv(s.filter.To.UnixMilli()-1, periodLength))
	}
	err = s.tx.Row(ctx, query, arguments, &found.first, &found.last)
	return found, err
}

func floorDiv(n, by int64) int64 {
	if n < 0 {
		return (n - by + 1) / by
	}
	return n / by
}
