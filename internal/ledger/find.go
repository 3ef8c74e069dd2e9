package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
		if some, err := s.build(ctx); err != nil || !some {
			return err
		}
		page, err = s.run(ctx)
		return err
	})
	return page, l.failure("find", err)
}

// search is one search. Its conditions hold for rows of the table calls.
type search struct {
	ledger    *Ledger
	tx        *database.Tx
	filter    Filter
	equal     []condition // each has an index
	other     []string
	arguments []any // of other
	words     string
}

// condition says that a column must have a value. The table has an index for it, which is named by the column.
type condition struct {
	column, text string
	arguments    []any
}

func equal(column string, value any) condition {
	return condition{column, column + " = ?", []any{value}}
}

// build makes the conditions of the filter. It reports whether any call can meet them.
func (s *search) build(ctx context.Context) (some bool, err error) {
	f := &s.filter
	for _, of := range []struct {
		column string
		kind   nameKind
		text   string
		asked  bool
	}{
		{"session", sessionName, f.Session, f.Session != ""},
		{"person", personName, f.User, f.User != ""},
		{"tool", toolName, f.Tool, f.Tool != ""},
		{"outcome", outcomeName, f.Outcome, f.Outcome != ""},
		{"tenant", tenantName, valueOf(f.Tenant), f.Tenant != nil},
	} {
		if !of.asked {
			continue
		}
		id, err := idOf(ctx, s.tx, of.kind, of.text)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.equal = append(s.equal, equal(of.column, id))
	}
	if f.Denied {
		s.equal = append(s.equal, condition{"denied", "denied = 1", nil})
	}
	if f.Parent != "" {
		parent, err := callID(f.Parent)
		if err != nil {
			return false, err
		}
		s.equal = append(s.equal, equal("parent", parent))
	}
	if f.Prefix != "" {
		first, last, err := idRange(f.Prefix)
		if err != nil {
			return false, err
		}
		s.where("call_id between ? and ?", first, last)
	}
	if f.TopLevel {
		s.where("parent is null")
	}
	if !f.From.IsZero() {
		s.where("at >= ?", f.From.UnixMilli())
	}
	if !f.To.IsZero() {
		s.where("at < ?", f.To.UnixMilli())
	}
	return true, s.addWords()
}

func (s *search) where(condition string, arguments ...any) {
	s.other = append(s.other, condition)
	s.arguments = append(s.arguments, arguments...)
}

func (s *search) addWords() error {
	asked := askedWords(s.filter.Words)
	switch {
	case s.filter.Words == "":
		return nil
	case s.ledger.options.NoWords:
		return fmt.Errorf("%w: the ledger keeps no index of words", ErrFilter)
	case len(asked) == 0:
		return fmt.Errorf("%w: %q has no word", ErrFilter, s.filter.Words)
	}
	s.words = s.ledger.database.Only(`"`+strings.Join(asked, `" "`)+`"`, "'"+strings.Join(asked, "' & '")+"'")
	return nil
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// run runs the search.
func (s *search) run(ctx context.Context) (page Page, err error) {
	text, err := s.statement(ctx)
	if err != nil {
		return page, err
	}
	size, full := 0, false
	var id int64
	err = s.tx.Rows(ctx, text, s.arguments, func(scan func(into ...any) error) error {
		if full || len(page.Entries) == s.filter.Limit {
			page.Cursor = page.Entries[len(page.Entries)-1].Record.CallID
			return errEnough
		}
		var content []byte
		if err := scan(&id, &content); err != nil {
			return err
		}
		entry, err := decode(content)
		if err != nil {
			return fmt.Errorf("row %d: %w", id, err)
		}
		page.Entries = append(page.Entries, entry)
		size += len(content)
		full = size >= s.filter.MaxBytes
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return page, err
}

var errEnough = errors.New("enough rows")

// statement returns the text of the search. With words, SQLite passes through the index of words, and otherwise
// through the index of the condition that the fewest calls meet. PostgreSQL chooses for itself.
func (s *search) statement(ctx context.Context) (string, error) {
	rarest, err := s.rarest(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range s.equal {
		s.where(c.text, c.arguments...)
	}
	s.where("tenant is not null")
	from, order := "calls", "at desc, id desc"
	switch sqlite := s.ledger.database.Only("sqlite", "") != ""; {
	case s.filter.Parent != "":
		order = "call_id"
	case s.words != "" && sqlite:
		from, order = "words cross join calls on calls.id = words.rowid", "words.rowid desc"
		s.where("words match ?", s.words)
	case s.words != "":
		s.where("words @@ cast(? as tsquery)", s.words)
		order = "id desc"
	case sqlite:
		from = "calls indexed by calls_" + rarest
	}
	if err := s.after(ctx, order); err != nil {
		return "", err
	}
	return fmt.Sprintf("select calls.id, content from %s where %s order by %s limit %d", from,
		strings.Join(s.other, " and "), order, s.filter.Limit+1), nil
}

// after adds the condition that calls come after those of the page before. The cursor is the id of its last call, since
// row numbers would tell how many calls other tenants make.
func (s *search) after(ctx context.Context, order string) error {
	if s.filter.Cursor == "" {
		return nil
	}
	last, err := callID(s.filter.Cursor)
	var at, id int64
	if err == nil {
		one := s.filter.Tenant
		err = s.tx.Row(ctx, "select calls.at, calls.id from calls join tenants on tenants.id = calls.tenant "+
			"where call_id = ? and (name = ? or ? = 0)", []any{last, clean(valueOf(one)), flag(one != nil)}, &at, &id)
	}
	switch {
	case s.filter.Parent != "" || errors.Is(err, ErrID) || errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: %q is no cursor of this search", ErrFilter, s.filter.Cursor)
	case err != nil:
		return err
	}
	if strings.HasPrefix(order, "at") {
		s.where("(at, id) < (?, ?)", at, id)
	} else {
		s.where("calls.id < ?", id)
	}
	return nil
}

// manyCalls is how many calls are counted to find the rarest condition. It takes a third of a millisecond.
const manyCalls = 2000

// rarest returns the column of the condition that the fewest calls meet, or "at" if there is none.
func (s *search) rarest(ctx context.Context) (string, error) {
	if len(s.equal) == 0 {
		return "at", nil
	}
	if len(s.equal) == 1 {
		return s.equal[0].column, nil
	}
	best, fewest := "", int64(0)
	for _, c := range s.equal {
		var n int64
		err := s.tx.Row(ctx, fmt.Sprintf("select count(*) from (select 1 from calls where %s limit %d) as counted", c.text,
			manyCalls), c.arguments, &n)
		if err != nil {
			return "", err
		}
		if best == "" || n < fewest {
			best, fewest = c.column, n
		}
	}
	return best, nil
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
