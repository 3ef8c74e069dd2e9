package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
	"github.com/caisson-run/caisson/tool"
)

// Intend keeps that a call is about to run, and returns when that is durable. Append removes it with the call's record.
// If this process ends before, the call gets the record of the entry with the kind [tool.UnknownOutcome]. If ctx ends
// first, Intend returns its error, and the intent may be kept nevertheless.
func (l *Ledger) Intend(ctx context.Context, entry Entry) error {
	id, err := callID(entry.Record.CallID)
	if err != nil {
		return l.failure("append", err)
	}
	entry.Record.Result = tool.Result{
		Kind:  tool.UnknownOutcome,
		Error: "the process that ran the call has ended before it; find out what the call has done before it is made again",
	}
	entry.Record.Usage, entry.Whole = tool.Usage{}, nil
	content, err := entry.encode()
	if err != nil {
		return l.failure("append", err)
	}
	holder, run := holderIn(ctx), runIn(ctx)
	w := &waiting{entry: &Entry{Tenant: entry.Tenant}}
	if holder != nil {
		w.row = holder.row()
	}
	err = l.asWriter(ctx, w, func(ctx context.Context, tx *database.Tx, writer int64) error {
		if err := run.check(ctx, tx); err != nil {
			return err
		}
		if err := holder.use(ctx, tx, id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into intents (call_id, writer, content) values (?, ?, ?)", id, writer, string(content))
		return err
	})
	return l.failure("append", err)
}

// asWriter has work done in a transaction in which this process has a lease. The entry says whose turn it is.
func (l *Ledger) asWriter(
	ctx context.Context, w *waiting, work func(ctx context.Context, tx *database.Tx, writer int64) error,
) error {
	if err := l.register(ctx); err != nil {
		return err
	}
	w.leased = true
	w.work = func(ctx context.Context, tx *database.Tx) error { return work(ctx, tx, l.writer.Load()) }
	return l.enqueue(ctx, w)
}

// doWork does the work of a group, and returns the entries that are to be appended.
func (l *Ledger) doWork(ctx context.Context, tx *database.Tx, group []*waiting) (entries []*waiting, err error) {
	var works []*waiting
	for _, w := range group {
		if w.work == nil {
			entries = append(entries, w)
		} else {
			works = append(works, w)
		}
	}
	// All processes change rows in the same order. Otherwise, two of them could wait for each other.
	slices.SortStableFunc(works, func(a, b *waiting) int { return strings.Compare(a.row, b.row) })
	renewed := false
	for _, w := range works {
		if w.leased && !renewed {
			if err := l.renew(ctx, tx, l.writer.Load()); err != nil {
				return nil, err
			}
			renewed = true
		}
		if w.denied = w.work(ctx, tx); w.denied != nil && !changedNothing(w.denied) {
			return nil, w.denied
		}
	}
	return entries, nil
}

// changedNothing reports whether an error of work means that it found a reason to change nothing. The rest of its group
// is committed.
func changedNothing(err error) bool {
	return errors.Is(err, ErrTooMany) || errors.Is(err, ErrChanged) || errors.Is(err, errFence)
}

// Bounds on writes that failed and are tried again.
const (
	maxLate      = 10_000
	maxLateBytes = 64 << 20
)

// late holds writes that failed and are tried again. A record beyond the bounds is dropped, and its intent stays. It is
// safe for concurrent use.
type late struct {
	mu    sync.Mutex
	all   []*waiting
	bytes int
}

// add adds something, unless it will never be written.
func (t *late) add(w *waiting, reason error) {
	for _, lasting := range []error{ErrKept, ErrTooLarge, errFence, ErrChanged} {
		if errors.Is(reason, lasting) {
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for ; w != nil; w = w.instead {
		if size := w.size(); len(t.all) < maxLate && t.bytes+size <= maxLateBytes {
			t.all, t.bytes = append(t.all, w), t.bytes+size
			return
		}
	}
}

// take returns all, and forgets it.
func (t *late) take() []*waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.all
	t.all, t.bytes = nil, 0
	return taken
}

// settle removes writers whose leases expired longer ago than late, and gives their calls a record.
func (l *Ledger) settle(ctx context.Context, late time.Duration) error {
	if err := l.removeWriters(ctx, late); err != nil {
		return err
	}
	for {
		contents, err := l.orphans(ctx)
		if err != nil || len(contents) == 0 {
			return err
		}
		for _, content := range contents {
			if err := l.settleOne(ctx, content); err != nil {
				return err
			}
		}
	}
}

// maxOrphans is the number of intents that are read at once.
const maxOrphans = 16

// orphans returns some intents whose writers are gone.
func (l *Ledger) orphans(ctx context.Context) (found []orphan, err error) {
	err = l.database.View(ctx, func(tx *database.Tx) error {
		return tx.Rows(ctx, "select call_id, content from intents where writer not in (select id from writers) "+
			"order by call_id limit ?", []any{maxOrphans}, func(scan func(into ...any) error) error {
			var one orphan
			err := scan(&one.id, &one.content)
			found = append(found, one)
			return err
		})
	})
	return found, err
}

type orphan struct {
	id      []byte
	content string
}

// settleOne gives the call of an intent its record, unless another process has done so.
func (l *Ledger) settleOne(ctx context.Context, o orphan) error {
	entry, err := decode([]byte(o.content))
	if err == nil {
		entry.Intended, entry.Wire = true, nil
		err = l.Append(ctx, entry)
	}
	if !errors.Is(err, ErrKept) && !errors.Is(err, ErrDamaged) {
		return err
	}
	if errors.Is(err, ErrDamaged) {
		l.options.Logger.ErrorContext(ctx, "an intent cannot be read", "call_id", hyphenated(o.id), "err", err)
	}
	return l.database.Update(ctx, func(tx *database.Tx) error {
		_, err := tx.Exec(ctx, "delete from intents where call_id = ?", o.id)
		return err
	})
}
