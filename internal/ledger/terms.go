package ledger

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"
)

// The index of words has terms. Each begins with the id of a tenant, so that a search passes through the calls of one
// tenant. Besides the words of a call, there are terms for the values in its columns and for its time. So a search for
// words and other conditions looks up in the index what meets all of them, and passes over no call.

// wordTerm returns the term for a word.
func wordTerm(tenant int64, word string) string { return strconv.FormatInt(tenant, 10) + "x" + word }

// valueTerm returns the term for a value in a column, or for a period of time.
func valueTerm(tenant int64, column string, value int64) string {
	return strconv.FormatInt(tenant, 10) + "k" + column + strconv.FormatUint(uint64(value), 10)
}

// periods are the units of time for which there are terms. A unit is a multiple of the next.
var periods = []struct {
	name string
	unit int64 // milliseconds
}{
	{"month", 30 * 24 * time.Hour.Milliseconds()}, {"day", 24 * time.Hour.Milliseconds()},
	{"hour", time.Hour.Milliseconds()},
}

// termsOf returns the terms of a call, with spaces between them. values are those in its columns by name; nil has no term.
func (l *Ledger) termsOf(tenant int64, e *Entry, values map[string]any) string {
	if l.options.NoWords {
		return ""
	}
	var terms []string
	for _, word := range wordsOf(e) {
		terms = append(terms, wordTerm(tenant, word))
	}
	for column, value := range values {
		if value, ok := value.(int64); ok {
			terms = append(terms, valueTerm(tenant, column, value))
		}
	}
	if len(e.Record.Denials) > 0 {
		terms = append(terms, valueTerm(tenant, "denied", 1))
	}
	for _, p := range periods {
		terms = append(terms, valueTerm(tenant, p.name, floorDiv(e.Time.UnixMilli(), p.unit)))
	}
	return strings.Join(terms, " ")
}

// maxPeriods bounds the terms for the time in one search. A longer time is searched without terms.
const maxPeriods = 400

// timeTerms returns the terms of periods that cover the time from first to last, in milliseconds: nil if there would be
// too many. They may begin an hour before and end an hour after it.
func timeTerms(tenant, first, last int64) (terms []string) {
	for at := first; at <= last; {
		for _, p := range periods {
			start := floorDiv(at, p.unit) * p.unit
			whole := start == at && at+p.unit-1 <= last
			if whole || p.unit == periods[len(periods)-1].unit {
				terms = append(terms, valueTerm(tenant, p.name, floorDiv(at, p.unit)))
				at = start + p.unit
				break
			}
		}
		if len(terms) > maxPeriods {
			return nil
		}
	}
	return terms
}

func floorDiv(n, by int64) int64 {
	if n < 0 {
		return (n - by + 1) / by
	}
	return n / by
}

// matching returns the expression for the index of words that finds the calls of a tenant with all words, and, as far as
// there are terms for it, all that the filter says otherwise: in the language of SQLite or PostgreSQL.
func (s *search) matching(ctx context.Context, tenant int64) (string, error) {
	quote, and, or := `"`, " AND ", " OR "
	if s.ledger.database.Only("", "postgres") != "" {
		quote, and, or = "'", " & ", " | "
	}
	var all []string
	for _, word := range s.words {
		all = append(all, quote+wordTerm(tenant, word)+quote)
	}
	for _, c := range s.equal {
		all = append(all, quote+valueTerm(tenant, c.column, c.value)+quote)
	}
	periods, err := s.periods(ctx, tenant)
	if len(periods) > 0 {
		all = append(all, "("+quote+strings.Join(periods, quote+or+quote)+quote+")")
	}
	return strings.Join(all, and), err
}

// periods returns the terms of the time that is asked for. It is no longer than the time in which the tenant has calls.
func (s *search) periods(ctx context.Context, tenant int64) ([]string, error) {
	if s.filter.From.IsZero() && s.filter.To.IsZero() {
		return nil, nil
	}
	ends := [2]int64{}
	for i, order := range []string{"", " desc"} {
		err := s.tx.Row(ctx, "select at from calls where tenant = ? and tenant is not null order by at"+order+" limit 1",
			[]any{tenant}, &ends[i])
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	first, last := ends[0], ends[1]
	if !s.filter.From.IsZero() {
		first = max(first, s.filter.From.UnixMilli())
	}
	if !s.filter.To.IsZero() {
		last = min(last, s.filter.To.UnixMilli()-1)
	}
	if first == ends[0] && last == ends[1] {
		return nil, nil
	}
	return timeTerms(tenant, first, last), nil
}
