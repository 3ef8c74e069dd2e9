package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// waiting is an entry, or other work in a transaction, whose caller waits for it to be committed.
type waiting struct {
	entry  *Entry
	id     []byte
	bytes  int                                              // about how many the work writes, if they may be many
	row    string                                           // the key or the run that the work changes
	work   func(ctx context.Context, tx *database.Tx) error // nil for an entry that is appended
	leased bool                                             // this process must have a lease
	again  bool                                             // what fails is tried again later
	alone  bool                                             // its caller does not wait
	denied error                                            // see changedNothing

	instead *waiting // is tried later if there is no room for this; may be nil
	done    chan error
}

// size is about how many bytes its JSON has. It is made when its turn comes, since many long ones may wait.
func (w *waiting) size() int {
	size := len(w.entry.Record.Function.Arguments) + w.entry.Record.Result.Size() + len(w.entry.Record.Log)
	if w.entry.Whole != nil {
		size += w.entry.Whole.Size()
	}
	return size + len(w.entry.Wire) + len(w.entry.Inputs) + w.bytes + 1<<10
}

// Append keeps an entry, and returns when it is durable, or before with [Options.Relaxed], unless many wait. Entries
// that are appended at the same time are committed together. If ctx ends first, Append returns its error, and the entry
// may be kept nevertheless.
func (l *Ledger) Append(ctx context.Context, entry Entry) error {
	id, err := callID(entry.Record.CallID)
	if err != nil {
		return l.failure("append", err)
	}
	w := &waiting{entry: &entry, id: id, again: entry.Intended}
	if l.options.Relaxed && l.queue.hasRoom() {
		w.alone, w.again, w.done = true, true, make(chan error, 1)
		if !l.queue.add(w) {
			err = ErrClosed
		}
		return l.failure("append", err)
	}
	return l.failure("append", l.enqueue(ctx, w))
}

// enqueue waits until an entry or other work is committed.
func (l *Ledger) enqueue(ctx context.Context, w *waiting) error {
	w.done = make(chan error, 1)
	if !l.queue.add(w) {
		return ErrClosed
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write commits the entries, group by group, until the turns are closed.
func (l *Ledger) write(ctx context.Context) {
	defer close(l.ended)
	for {
		group, bytes := l.queue.next()
		if len(group) == 0 {
			return
		}
		began := time.Now()
		l.commit(ctx, group)
		l.queue.took(len(group), time.Since(began))
		if l.count(len(group), bytes) {
			select {
			case l.due <- struct{}{}:
			default: // it is being done
			}
		}
	}
}

// commit commits a group. If that fails, each entry is committed alone, so that one which cannot be kept does not keep
// the others out.
func (l *Ledger) commit(ctx context.Context, group []*waiting) {
	err := l.update(ctx, group)
	l.failed.Store(err != nil)
	for i, w := range group {
		own := err
		if err != nil && len(group) > 1 && !database.IsDown(err) {
			own = l.update(ctx, group[i:i+1])
			if errors.Is(own, ErrKept) && !errors.Is(err, ErrKept) && !w.entry.Intended {
				own = nil // the connection was lost after the group had been committed
			}
		}
		if own == nil {
			own = w.denied
		}
		if own != nil && w.again {
			l.late.add(w, own)
		}
		if own != nil && w.alone {
			l.options.Logger.ErrorContext(ctx, "a record cannot be kept yet", "call_id", w.entry.Record.CallID, "err", own)
		}
		w.done <- own
	}
}

// update adds a group in a transaction.
func (l *Ledger) update(ctx context.Context, group []*waiting) error {
	for isSecond := false; ; isSecond = true {
		err := l.database.Update(ctx, func(tx *database.Tx) error { return l.add(ctx, tx, group) })
		if err != nil {
			l.names = names{} // their ids may have been rolled back
		}
		if isSecond || !errors.Is(err, errOtherTenant) {
			return err
		}
	}
}

// add adds a group to the chain.
func (l *Ledger) add(ctx context.Context, tx *database.Tx, group []*waiting) error {
	group, err := l.doWork(ctx, tx, group)
	if err != nil || len(group) == 0 {
		return err
	}
	if err := l.names.begin(ctx, l.database, tx); err != nil {
		return err
	}
	last, err := l.lockChain(ctx, tx)
	if err != nil {
		return err
	}
	if err := l.names.add(ctx, tx, group); err != nil {
		return err
	}
	sums, periods := map[int64]*sum{}, map[int64]span{}
	for _, w := range group {
		var id int64
		if last, id, err = l.addOne(ctx, tx, last, w, sums); err != nil {
			return err
		}
		period := floorDiv(last.at, periodLength)
		periods[period] = periods[period].with(id)
	}
	if err := l.addPeriods(ctx, tx, periods); err != nil {
		return err
	}
	for _, tenant := range slices.Sorted(maps.Keys(sums)) { // see doWork
		s := sums[tenant]
		found, err := tx.Exec(ctx, "update tenants set calls = calls + ?, bytes = bytes + ? where id = ? and name = ?",
			s.calls, s.bytes, tenant, clean(s.tenant))
		if err == nil && found == 0 {
			err = errOtherTenant
		}
		if err != nil {
			return err
		}
	}
	return l.moveChain(ctx, tx, last)
}

// errOtherTenant means that the id of a tenant has become another's, since an older copy of the database was restored.
// The group is then added again.
var errOtherTenant = errors.New("the id of a tenant has changed")

// sum is what the calls of a tenant take.
type sum struct {
	tenant       string
	calls, bytes int64
}

// addOne adds one entry after the last link, and returns its own link, and the id of its row.
func (l *Ledger) addOne(
	ctx context.Context, tx *database.Tx, last link, w *waiting, sums map[int64]*sum,
) (own link, id int64, err error) {
	e := w.entry
	content, err := e.encode()
	if err != nil {
		return link{}, 0, err
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // it never fails
	own = last.next(w.id, e.Time, digestOf(salt, content))
	values := []any{own.chain, own.seq, own.id, own.at, own.digest, own.hash, nil}
	if e.Record.Parent != "" {
		parent, err := callID(e.Record.Parent)
		if err != nil {
			return link{}, 0, err
		}
		values[len(values)-1] = parent
	}
	for _, named := range namesIn(e) {
		id, err := l.names.id(ctx, tx, named.kind, named.text)
		if err != nil {
			return link{}, 0, err
		}
		values = append(values, id)
	}
	tenant := values[7].(int64)
	if sums[tenant] == nil {
		sums[tenant] = &sum{tenant: e.Tenant}
	}
	sums[tenant].calls++
	sums[tenant].bytes += int64(len(content))
	terms := l.termsOf(tenant, e, map[string]any{
		"tool": values[8], "person": values[9], "session": values[10], "outcome": values[11],
	})
	values = append(values, flag(len(e.Record.Denials) > 0), salt, string(content))
	if e.Intended {
		if _, err := tx.Exec(ctx, "delete from intents where call_id = ?", w.id); err != nil {
			return link{}, 0, err
		}
	}
	id, err = l.insert(ctx, tx, values, terms)
	return own, id, err
}

const insertCall = `insert into calls (chain, seq, call_id, at, digest, hash, parent, tenant, tool, person, session,
	outcome, denied, salt, content) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (call_id) do nothing returning id`

const insertCallWithWords = `insert into calls (chain, seq, call_id, at, digest, hash, parent, tenant, tool, person,
	session, outcome, denied, salt, content, words)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, array_to_tsvector(string_to_array(?, ' ')))
	on conflict (call_id) do nothing returning id`

// insert inserts a row of calls, with its words, and returns its id.
func (l *Ledger) insert(ctx context.Context, tx *database.Tx, values []any, words string) (id int64, err error) {
	text := insertCall
	if words != "" {
		if text = l.database.Only(insertCall, insertCallWithWords); text == insertCallWithWords {
			values, words = append(values, words), ""
		}
	}
	err = tx.Row(ctx, text, values, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrKept
	}
	if err != nil || words == "" {
		return id, err
	}
	_, err = tx.Exec(ctx, "insert into words (rowid, text) values (?, ?)", id, words)
	return id, err
}
