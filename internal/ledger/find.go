package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// Filter says which calls are asked for. The zero value asks for the newest calls of all tenants.
type Filter struct {
	Tenant   *string // nil for all tenants; "" is the tenant of calls that have none
	Tool     string
	User     string
	Session  string
	Outcome  string // "success", or the kind of a failure
	Denied   bool   // those alone that were denied something
	Prefix   string // with which the id begins: at least 8 characters
	Parent   string // the calls that the call with this id made, oldest first
	TopLevel bool   // those alone that no other call made
	From, To time.Time
	Words    string // all of which the arguments or the result have, in any order
	Limit    int    // at most 1,000; zero means 50
	MaxBytes int    // no further calls once their contents have as many bytes; zero means 4 MiB
	Cursor   string // of the page before
}

// Page is some of the calls that a filter asks for.
type Page struct {
	Entries []Entry
	// Cursor asks for the next page; empty if there is none.
	Cursor string
}

// MaxLimit is the greatest limit of a [Filter].
const MaxLimit = 1000

const (
	defaultLimit    = 50
	defaultMaxBytes = 4 << 20
)

// Calls returns the calls that a filter asks for, newest first.
func (l *Ledger) Calls(ctx context.Context, f Filter) (page Page, err error) {
	if f.Limit < 0 || f.MaxBytes < 0 || f.Limit > MaxLimit {
		return page, l.failure("find", fmt.Errorf("%w: a limit of %d calls, %d bytes; want 0 to %d calls", ErrFilter,
			f.Limit, f.MaxBytes, MaxLimit))
	}
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	if f.MaxBytes == 0 {
		f.MaxBytes = defaultMaxBytes
	}
	err = l.database.View(ctx, func(tx *database.Tx) error {
		s := search{ledger: l, tx: tx, filter: f}
		some, err := s.build(ctx)
		if err != nil || !some {
			return err
		}
		found, err := s.places(ctx)
		if err == nil {
			page, err = s.read(ctx, found)
		}
		return err
	})
	return page, l.failure("find", err)
}

// search is one search. Its conditions hold for rows of the table calls.
type search struct {
	ledger    *Ledger
	tx        *database.Tx
	filter    Filter
	tenants   []int64     // whose calls are asked for
	equal     []condition // each has an index
	other     []string
	arguments []any    // of other
	words     []string // nil for any
	rows      span     // where the calls are, if they are searched for by words and time
	last      place    // of the page before; the zero value for the first page
}

// place is where a call is in the order of calls.
type place struct{ at, id int64 }

// condition says that a column must have a value. The table has an index for it, which is named by the column.
type condition struct {
	column string
	value  int64
}

func (c condition) text() (text string, arguments []any) {
	if c.column == "denied" { // whose index says so, too
		return "denied = 1", nil
	}
	return c.column + " = ?", []any{c.value}
}

// build makes the conditions of the filter. It reports whether any call can meet them.
func (s *search) build(ctx context.Context) (some bool, err error) {
	f := &s.filter
	if s.tenants, err = s.tenantIDs(ctx); err != nil || len(s.tenants) == 0 {
		return false, err
	}
	for _, of := range []struct {
		column string
		kind   nameKind
		text   string
	}{
		{"session", sessionName, f.Session}, {"person", personName, f.User}, {"tool", toolName, f.Tool},
		{"outcome", outcomeName, f.Outcome},
	} {
		if of.text == "" {
			continue
		}
		id, err := idOf(ctx, s.tx, of.kind, of.text)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.equal = append(s.equal, condition{of.column, id})
	}
	if f.Denied {
		s.equal = append(s.equal, condition{"denied", 1})
	}
	if err := s.addIDs(); err != nil {
		return false, err
	}
	if !f.From.IsZero() {
		s.where("at >= ?", f.From.UnixMilli())
	}
	if !f.To.IsZero() {
		s.where("at < ?", f.To.UnixMilli())
	}
	if err := s.addWords(); err != nil {
		return false, err
	}
	if s.words != nil && !(f.From.IsZero() && f.To.IsZero()) {
		if s.rows, err = s.periodSpan(ctx); err != nil || s.rows == (span{}) {
			return false, err
		}
	}
	return true, s.addCursor(ctx)
}

// tenantIDs returns the ids of the tenants whose calls are asked for.
func (s *search) tenantIDs(ctx context.Context) (ids []int64, err error) {
	if s.filter.Tenant != nil {
		id, err := idOf(ctx, s.tx, tenantName, *s.filter.Tenant)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return []int64{id}, err
	}
	err = s.tx.Rows(ctx, "select id from tenants", nil, func(scan func(into ...any) error) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// addIDs adds the conditions on ids of calls.
func (s *search) addIDs() error {
	f := &s.filter
	if f.Parent != "" {
		parent, err := callID(f.Parent)
		if err != nil {
			return err
		}
		s.where("parent = ?", parent)
	}
	if f.Prefix != "" {
		first, last, err := idRange(f.Prefix)
		if err != nil {
			return err
		}
		s.where("call_id between ? and ?", first, last)
	}
	if f.TopLevel {
		s.where("parent is null")
	}
	return nil
}

func (s *search) where(condition string, arguments ...any) {
	s.other = append(s.other, condition)
	s.arguments = append(s.arguments, arguments...)
}

func (s *search) addWords() error {
	s.words = askedWords(s.filter.Words)
	switch {
	case s.filter.Words == "":
		return nil
	case s.ledger.options.NoWords:
		return fmt.Errorf("%w: the ledger keeps no index of words", ErrFilter)
	case len(s.words) == 0:
		return fmt.Errorf("%w: %q has no word", ErrFilter, s.filter.Words)
	case len(s.words) > maxAsked:
		return fmt.Errorf("%w: %d words; want at most %d", ErrFilter, len(s.words), maxAsked)
	}
	return nil
}

// addCursor finds the last call of the page before. The cursor is its id, since the numbers of rows would tell how many
// calls other tenants make.
func (s *search) addCursor(ctx context.Context) error {
	if s.filter.Cursor == "" {
		return nil
	}
	last, err := callID(s.filter.Cursor)
	var tenant int64
	if err == nil {
		err = s.tx.Row(ctx, "select at, id, tenant from calls where call_id = ? and tenant is not null", []any{last},
			&s.last.at, &s.last.id, &tenant)
	}
	switch {
	case errors.Is(err, ErrID) || errors.Is(err, sql.ErrNoRows) || err == nil && !slices.Contains(s.tenants, tenant) ||
		s.filter.Parent != "":
		return fmt.Errorf("%w: %q is no cursor of this search", ErrFilter, s.filter.Cursor)
	}
	return err
}

// places returns where the calls are that are asked for, in order: one more than the limit, if there are as many. Those
// of each tenant are found alone.
func (s *search) places(ctx context.Context) (found []place, err error) {
	for _, tenant := range s.tenants {
		text, arguments, err := s.statement(ctx, tenant)
		if err != nil {
			return nil, err
		}
		err = s.tx.Rows(ctx, text, arguments, func(scan func(into ...any) error) error {
			var p place
			err := scan(&p.at, &p.id)
			found = append(found, p)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if s.filter.Parent != "" {
		return found, nil // one tenant's, in the order of their ids
	}
	slices.SortFunc(found, func(a, b place) int {
		if s.words == nil && a.at != b.at {
			return cmp.Compare(b.at, a.at)
		}
		return cmp.Compare(b.id, a.id)
	})
	return found[:min(len(found), s.filter.Limit+1)], nil
}

// read reads the calls at places, as far as they fit on a page.
func (s *search) read(ctx context.Context, found []place) (page Page, err error) {
	size := 0
	for i, p := range found {
		if i == s.filter.Limit || size >= s.filter.MaxBytes {
			page.Cursor = page.Entries[i-1].Record.CallID
			break
		}
		var content []byte
		if err := s.tx.Row(ctx, "select content from calls where id = ?", []any{p.id}, &content); err != nil {
			return page, err
		}
		entry, err := decode(content)
		if err != nil {
			return page, fmt.Errorf("row %d: %w", p.id, err)
		}
		entry.Inputs = nil
		page.Entries = append(page.Entries, entry)
		size += len(content)
	}
	return page, nil
}

// statement returns the search for the calls of one tenant. With words, SQLite looks into the index of words, and
// otherwise it passes through the index of the condition that the fewest calls meet. PostgreSQL chooses for itself.
func (s *search) statement(ctx context.Context, tenant int64) (text string, arguments []any, err error) {
	from, order, after := "calls", "at desc, id desc", "(at, id) < (?, ?)"
	conditions, arguments := append([]string{"tenant = ?"}, s.other...), append([]any{tenant}, s.arguments...)
	where := func(condition string, values ...any) {
		conditions, arguments = append(conditions, condition), append(arguments, values...)
	}
	for _, c := range s.equal {
		text, values := c.text()
		where(text, values...)
	}
	afterValues := []any{s.last.at, s.last.id}
	switch sqlite := s.ledger.database.Only("sqlite", "") != ""; {
	case s.filter.Parent != "":
		order = "call_id"
	case s.words != nil && sqlite:
		from, order = "words cross join calls on calls.id = words.rowid", "words.rowid desc"
		where("words match ?", s.matching(tenant))
		after, afterValues = "words.rowid < ?", afterValues[1:]
		if s.rows != (span{}) {
			where("words.rowid between ? and ?", s.rows.first, s.rows.last)
		}
	case s.words != nil:
		order = "id desc"
		where("words @@ cast(? as tsquery)", s.matching(tenant))
		after, afterValues = "id < ?", afterValues[1:]
		if s.rows != (span{}) {
			where("id between ? and ?", s.rows.first, s.rows.last)
		}
	case sqlite && s.filter.Prefix == "":
		rarest, err := s.rarest(ctx, tenant)
		if err != nil {
			return "", nil, err
		}
		from = "calls indexed by calls_" + rarest
		if rarest != "tenant" && rarest != "denied" { // of the columns of which the index has those that are not null
			where(rarest + " is not null")
		}
	}
	where("tenant is not null")
	if s.last != (place{}) {
		where(after, afterValues...)
	}
	return fmt.Sprintf("select at, calls.id from %s where %s order by %s limit %d", from,
		strings.Join(conditions, " and "), order, s.filter.Limit+1), arguments, nil
}

// manyCalls is how many calls are counted to find the rarest condition. It takes a third of a millisecond.
const manyCalls = 2000

// rarest returns the column of the condition that the fewest calls of a tenant meet, or "tenant" if there is none.
func (s *search) rarest(ctx context.Context, tenant int64) (string, error) {
	best, fewest := "tenant", int64(math.MaxInt64)
	for _, c := range s.equal {
		if len(s.equal) == 1 {
			return c.column, nil
		}
		var n int64
		text, values := c.text()
		some := fmt.Sprintf("select 1 from calls where tenant = ? and %s limit %d", text, manyCalls)
		err := s.tx.Row(ctx, "select count(*) from ("+some+") as counted", append([]any{tenant}, values...), &n)
		if err != nil {
			return "", err
		}
		if n < fewest {
			best, fewest = c.column, n
		}
	}
	return best, nil
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// Find returns the call with an id, or with a unique prefix of one of at least 8 characters.
func (l *Ledger) Find(ctx context.Context, id string) (entry Entry, err error) {
	first, last, err := idRange(id)
	if err != nil {
		return entry, l.failure("find", err)
	}
	var found []string
	var content []byte
	err = l.database.View(ctx, func(tx *database.Tx) error {
		return tx.Rows(ctx, "select call_id, content from calls where call_id between ? and ? and content is not null "+
			"order by call_id desc limit 6", []any{first, last}, func(scan func(into ...any) error) error {
			var raw []byte
			if err := scan(&raw, &content); err != nil {
				return err
			}
			found = append(found, hyphenated(raw))
			return nil
		})
	})
	switch {
	case err != nil:
	case len(found) == 0:
		err = fmt.Errorf("%q: %w", id, ErrNotFound)
	case len(found) > 1:
		err = fmt.Errorf("%q: %w: %s", id, ErrAmbiguous, strings.Join(found[:min(len(found), 5)], ", "))
	default:
		entry, err = decode(content)
	}
	return entry, l.failure("find", err)
}

// shown returns a location without the password in it.
func shown(location string) string {
	scheme, rest, isURL := strings.Cut(location, "://")
	if !isURL {
		return location
	}
	host := rest[strings.LastIndex(rest, "@")+1:]
	host, _, _ = strings.Cut(host, "?") // which may have a password, too
	return scheme + "://" + host
}
