package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// A ledger is pruned after so many entries, or entries with so many bytes, have been added, or an eighth of its limits.
// In between, it may exceed its limits by as much.
const (
	pruneAfter      = 1024
	pruneAfterBytes = 64 << 20
)

// checkpointAfter is after how many entries the last link is signed, and maintainEvery after how long, if there are new
// entries. Then records that are too old are removed, too.
const (
	checkpointAfter = 1024
	maintainEvery   = time.Minute
)

// Bounds of what is removed in one transaction, so that others do not wait for long: contents, and links.
const (
	maxRemoved = 64

	maxRemovedBytes = 2 << 20

	maxErased  = 512 // by an operator, who waits behind a busy server before each step
	leastPause = 5 * time.Millisecond
	maxTidied  = 1000
)

// added counts what was added since the ledger was pruned, and since a link was signed.
type added struct{ entries, bytes, unsigned atomic.Int64 }

// count counts entries, and reports whether it is time to prune or to sign.
func (l *Ledger) count(entries, bytes int) (due bool) {
	l.added.entries.Add(int64(entries))
	l.added.bytes.Add(int64(bytes))
	return l.added.unsigned.Add(int64(entries)) >= checkpointAfter || l.isOver()
}

// isOver reports whether so much was added that the ledger should be pruned.
func (l *Ledger) isOver() bool {
	o := &l.options
	return l.added.entries.Load() >= min(pruneAfter, o.KeepCalls/8+1) ||
		l.added.bytes.Load() >= min(pruneAfterBytes, o.KeepBytes/8+1)
}

// maintain prunes and signs when it is time to, until the ledger is closed. Entries are added meanwhile.
func (l *Ledger) maintain(ctx context.Context) {
	defer l.maintained.Done()
	clock := time.NewTicker(maintainEvery)
	defer clock.Stop()
	for {
		tick := false
		select {
		case <-l.ended:
			return
		case <-clock.C:
			tick = true
		case <-l.due:
		}
		old := tick && l.options.KeepFor > 0
		if old || l.isOver() {
			l.added.entries.Store(0)
			l.added.bytes.Store(0)
			if _, err := l.Prune(ctx); err != nil {
				l.options.Logger.ErrorContext(ctx, "old records cannot be removed", "err", err)
			}
		}
		if unsigned := l.added.unsigned.Load(); tick && unsigned > 0 || unsigned >= checkpointAfter {
			if err := l.checkpoint(ctx); err != nil {
				l.options.Logger.ErrorContext(ctx, "a checkpoint cannot be written", "err", err)
			}
		}
	}
}

// Prune removes the records that are too old or too many, and returns how many these were. The ledger does so itself
// while it is written. The end of ctx ends it between two steps.
func (l *Ledger) Prune(ctx context.Context) (pruned int64, err error) {
	for {
		var removed int64
		ended := ctx.Err()
		err := l.removing(context.WithoutCancel(ctx), func(tx *database.Tx) (err error) {
			if ended == nil {
				removed, err = l.pruneSome(ctx, tx)
			}
			return err
		})
		pruned += removed
		if err == nil && removed == 0 && pruned > 0 {
			err = l.tidy(context.WithoutCancel(ctx))
		}
		if err != nil || removed == 0 {
			return pruned, l.failure("prune", cmp.Or(err, ended))
		}
	}
}

// removing runs work in a transaction during which nothing is added. With SQLite, it then pauses for as long: other
// processes that wait have no turns, and look only now and then whether they may write.
func (l *Ledger) removing(ctx context.Context, work func(tx *database.Tx) error) error {
	if l.database.Only("sqlite", "") != "" {
		began := time.Now()
		defer func() { time.Sleep(max(time.Since(began), leastPause)) }()
	}
	return l.database.Update(ctx, func(tx *database.Tx) error {
		var number int64
		err := tx.Row(ctx, "select number from removals"+l.database.Only("", " for update"), nil, &number)
		if err != nil {
			return err
		}
		return work(tx)
	})
}

// pruneSome removes some records, and returns how many.
func (l *Ledger) pruneSome(ctx context.Context, tx *database.Tx) (removed int64, err error) {
	o := l.options
	if o.KeepFor > 0 {
		before := time.Now().Add(-o.KeepFor).UnixMilli()
		// An index of all calls by time would take a hundredth of the space, and a page of each commit.
		removed, err = l.remove(ctx, tx, "select calls.id from tenants cross join calls"+
			l.database.Only(" indexed by calls_tenant", "")+
			" where calls.tenant = tenants.id and calls.tenant is not null and at < ? limit ?", before, maxRemoved)
		if err != nil || removed > 0 {
			return removed, err
		}
	}
	var calls, bytes int64
	err = tx.Row(ctx, "select coalesce(sum(calls), 0), coalesce(sum(bytes), 0) from tenants", nil, &calls, &bytes)
	if err != nil || calls <= o.KeepCalls && bytes <= o.KeepBytes {
		return 0, err
	}
	// The tenant that takes most of either limit makes room, until another takes more: in steps of few bytes, since one
	// record can have as many as thousands.
	var tenants, own, sizes []int64
	err = tx.Rows(ctx, "select id, calls, bytes from tenants order by "+
		l.database.Only("max(calls * 1.0 / ?, bytes * 1.0 / ?)", "greatest(calls * 1.0 / ?, bytes * 1.0 / ?)")+
		" desc limit 2", []any{o.KeepCalls, o.KeepBytes}, func(scan func(into ...any) error) error {
		var tenant, calls, bytes int64
		err := scan(&tenant, &calls, &bytes)
		tenants, own, sizes = append(tenants, tenant), append(own, calls), append(sizes, bytes)
		return err
	})
	if err != nil {
		return 0, err
	}
	limit := min(maxRemoved, maxRemovedBytes*own[0]/max(sizes[0], 1)) // about as many as have so many bytes
	if calls > o.KeepCalls {
		limit = min(limit, calls-o.KeepCalls)
	} else {
		limit = min(limit, (bytes-o.KeepBytes)*own[0]/max(sizes[0], 1))
	}
	if len(own) > 1 && own[0] > own[1] {
		limit = min(limit, own[0]-own[1])
	}
	return l.remove(ctx, tx, "select id from calls where tenant = ? order by at, id limit ?", tenants[0], max(1, limit))
}

// remove removes the contents of the calls that a query selects.
func (l *Ledger) remove(
	ctx context.Context, tx *database.Tx, query string, arguments ...any,
) (removed int64, err error) {
	type row struct{ id, tenant, bytes int64 }
	var rows []row
	err = tx.Rows(ctx, "select id, tenant, octet_length(content) from calls where id in ("+query+")", arguments,
		func(scan func(into ...any) error) error {
			var r row
			err := scan(&r.id, &r.tenant, &r.bytes)
			rows = append(rows, r)
			return err
		})
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		if _, err := tx.Exec(ctx, l.database.Only(erase, erase+", words = null")+" where id = ?", r.id); err != nil {
			return 0, err
		}
		if _, err := tx.Exec(ctx, "update tenants set calls = calls - 1, bytes = bytes - ? where id = ?", r.bytes,
			r.tenant); err != nil {
			return 0, err
		}
		if words := l.database.Only("delete from words where rowid = ?", ""); words != "" {
			if _, err := tx.Exec(ctx, words, r.id); err != nil {
				return 0, err
			}
		}
	}
	return int64(len(rows)), nil
}

// erase leaves of a call what its chain needs.
const erase = `update calls set parent = null, tenant = null, tool = null, person = null, session = null,
	outcome = null, denied = null, salt = null, content = null`

// tidy removes the links with which a chain begins and whose contents are gone, and names that no call has any more.
func (l *Ledger) tidy(ctx context.Context) error {
	for more := true; more; {
		err := l.removing(ctx, func(tx *database.Tx) error {
			chains, err := chainsOf(ctx, tx)
			if err != nil {
				return err
			}
			more = false
			for _, c := range chains {
				some, err := l.tidyChain(ctx, tx, c.last.chain)
				if err != nil {
					return err
				}
				more = more || some
			}
			if more {
				return nil
			}
			return l.tidyNames(ctx, tx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tidyNames removes names that no call has any more, and periods of which there is none.
func (l *Ledger) tidyNames(ctx context.Context, tx *database.Tx) error {
	if _, err := tx.Exec(ctx, "update removals set number = number + 1"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "delete from tenants where calls = 0"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "delete from periods where last < (select coalesce(min(id), 0) from calls)"); err != nil {
		return err
	}
	for kind, column := range map[nameKind]string{personName: "person", sessionName: "session"} {
		_, err := tx.Exec(ctx, "delete from names where kind = ? and not exists (select 1 from calls where "+column+
			" = names.id)", int64(kind))
		if err != nil {
			return err
		}
	}
	return nil
}

// tidyChain removes the links before the first whose content is there, but for the last link, and reports whether there
// may be more.
func (l *Ledger) tidyChain(ctx context.Context, tx *database.Tx, chain int64) (more bool, err error) {
	var base, kept int64
	err = tx.Row(ctx, "select base_seq, seq from chains where id = ?", []any{chain}, &base, &kept)
	if err != nil {
		return false, err
	}
	err = tx.Row(ctx, "select seq from calls where chain = ? and seq > ? and content is not null order by seq limit 1",
		[]any{chain, base}, &kept)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if kept = min(kept, base+1+maxTidied); err != nil || kept-1 <= base {
		return false, err
	}
	var hash []byte
	if err = tx.Row(ctx, "select hash from calls where chain = ? and seq = ?", []any{chain, kept - 1}, &hash); err != nil {
		return false, err
	}
	if _, err = tx.Exec(ctx, "delete from calls where chain = ? and seq < ?", chain, kept); err != nil {
		return false, err
	}
	if _, err = tx.Exec(ctx, "delete from checkpoints where chain = ? and seq < ?", chain, kept-1); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, "update chains set base_seq = ?, base_hash = ? where id = ?", kept-1, hash, chain)
	return kept == base+1+maxTidied, err
}

// Erase removes the records of a tenant, or of one of its users if user is not empty, and returns how many these were.
// What is left of them proves only that there was something, and when it ended.
func (l *Ledger) Erase(ctx context.Context, tenant, user string) (erased int64, err error) {
	for {
		var removed int64
		err := l.removing(ctx, func(tx *database.Tx) (err error) {
			query := "select id from calls where tenant = (select id from tenants where name = ?)"
			arguments := []any{clean(tenant)}
			if user != "" {
				query += " and person = (select id from names where kind = ? and name = ?)"
				arguments = append(arguments, int64(personName), clean(user))
			}
			removed, err = l.remove(ctx, tx, query+" limit ?", append(arguments, maxErased)...)
			return err
		})
		if erased += removed; err == nil && removed == 0 {
			err = l.tidy(ctx)
		}
		if err != nil || removed == 0 {
			return erased, l.failure("erase", err)
		}
	}
}
