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

// ErrTooMany means that the tenant has as many runs that are not over as it may have.
var ErrTooMany = errors.New("too many runs")

// ErrChanged means that another process, or another request, has changed the run meanwhile.
var ErrChanged = errors.New("the run was changed meanwhile")

// Run is a run of a server. The ledger does not look into its content.
type Run struct {
	ID, Tenant string
	Status     string
	IsOver     bool // it stays in this status
	Created    time.Time
	// Until is when a run that is over is forgotten, or when the wait of another expires. It is zero while a process works
	// on it.
	Until   time.Time
	Pending int // how many answers it waits for
	Session string
	Content []byte
	Answers [][]byte // those of [Ledger.AddAnswers] since the content was written, in their order
	// Bytes is the size that counts toward [RunBounds]. A size below that of the content is replaced by it.
	Bytes int
	// Version is 0 before the run is kept.
	Version int64
	// Save identifies an attempt to save the run. Unsure lists earlier attempts whose outcome is unknown.
	Save   int64
	Unsure []int64
	// IsHeld is set if a live process works on the run, IsAbandoned if the process that worked on it is dead. They are
	// derived from its lease.
	IsHeld, IsAbandoned bool
}

// RunBounds bounds the runs of a tenant that are over. Those that ended first are forgotten first.
type RunBounds struct {
	Runs  int
	Bytes int
	// Keep is the time for which a run is kept after its wait has expired.
	Keep time.Duration
}

// AddRun keeps a new run, on which this process works, and forgets those that are too old or too many. It returns the
// run's version.
func (l *Ledger) AddRun(ctx context.Context, r Run, bounds RunBounds) (version int64, err error) {
	content, err := l.seal(r.Content)
	if err != nil {
		return 0, l.failure("add run", err)
	}
	err = l.asWriter(ctx, r.waiting(len(content)), func(ctx context.Context, tx *database.Tx, writer int64) error {
		now, err := l.now(ctx, tx)
		if err != nil {
			return err
		}
		tenant := clean(r.Tenant)
		if err := l.forgetRuns(ctx, tx, tenant, now, bounds); err != nil {
			return err
		}
		var waiting, bytes int
		err = tx.Row(ctx, "select count(*), coalesce(sum(bytes), 0) from runs where tenant = ? and over = 0 and "+
			"(writer is not null or until >= ?)", []any{tenant, now}, &waiting, &bytes)
		if err == nil && (waiting >= bounds.Runs || bytes+max(r.Bytes, len(r.Content)) > bounds.Bytes) {
			err = ErrTooMany
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "insert into runs (id, tenant, status, over, created, until, pending, session, version, "+
			"writer, cancel, bytes, save, content) values (?, ?, ?, ?, ?, 0, 0, ?, 1, ?, 0, ?, 0, ?)", r.ID, tenant, r.Status,
			flag(r.IsOver), r.Created.UnixMilli(), r.Session, writer, max(r.Bytes, len(r.Content)), content)
		return err
	})
	return 1, l.failure("add run", err)
}

// forgetRunsEvery is the time between two searches for old runs of all tenants. Each new run looks for those of its
// own.
const forgetRunsEvery = time.Minute

// maxForgottenRuns bounds the runs of all tenants that are removed at a time: all writes wait meanwhile.
const maxForgottenRuns = 100

// forgetRuns removes the runs that are too old, and those of a tenant that are too many. now is in milliseconds.
func (l *Ledger) forgetRuns(ctx context.Context, tx *database.Tx, tenant string, now int64, bounds RunBounds) error {
	const old = "select id from runs where (over = 1 and until < ? or over = 0 and (writer is null and until < ? " +
		"or writer not in (select id from writers) and created < ?))"
	const many = "select id from (select id, over, sum(1) over newest as number, sum(bytes) over newest as total " +
		"from runs where tenant = ? window newest as (order by over, until desc, id)) as counted " +
		"where over = 1 and (number >= ? or total > ?)"
	forget := func(chosen string, arguments ...any) error {
		for _, from := range []string{"run_events where run", "run_answers where run", "runs where id"} {
			if _, err := tx.Exec(ctx, "delete from "+from+" in ("+chosen+")", arguments...); err != nil {
				return err
			}
		}
		return nil
	}
	ages := []any{now, now - bounds.Keep.Milliseconds(), now - longWait.Milliseconds()}
	last := l.runsForgotten.Load()
	if now-last >= forgetRunsEvery.Milliseconds() && l.runsForgotten.CompareAndSwap(last, now) {
		if err := forget(old+" order by id limit ?", append(ages, maxForgottenRuns)...); err != nil {
			return err
		}
	}
	return forget(old+" and tenant = ? union "+many, append(ages, tenant, tenant, bounds.Runs, bounds.Bytes)...)
}

// ChangeRun replaces a run that has the version, and adds events, of which those before first are forgotten. If hold is
// set, this process works on it from now on, and otherwise none does. It fails with [ErrChanged] if the run has another
// version.
func (l *Ledger) ChangeRun(
	ctx context.Context, r Run, hold bool, events []Event, first int64,
) (version int64, err error) {
	until := int64(0)
	if !r.Until.IsZero() {
		until = r.Until.UnixMilli()
	}
	content, err := l.seal(r.Content)
	if err == nil {
		events, err = l.sealEvents(events)
	}
	if err != nil {
		return 0, l.failure("change run", err)
	}
	return l.change(ctx, &r, len(content), func(ctx context.Context, tx *database.Tx, writer int64, made *int64) error {
		holder := sql.NullInt64{Int64: writer, Valid: hold}
		err := r.update(ctx, tx, made, "status = ?, over = ?, until = ?, writer = ?, cancel = 0, bytes = ?, content = ?",
			r.Status, flag(r.IsOver), until, holder, max(r.Bytes, len(r.Content)), content)
		if err == nil {
			_, err = tx.Exec(ctx, "delete from run_answers where run = ?", r.ID)
		}
		if err != nil {
			return err
		}
		return addEvents(ctx, tx, r.ID, events, first)
	})
}

// AddAnswers adds answers to a run that has the version and waits for more, without writing the run's content again. It
// fails as [Ledger.ChangeRun] does.
func (l *Ledger) AddAnswers(ctx context.Context, r Run, answers []byte) (version int64, err error) {
	data, err := l.seal(answers)
	if err != nil {
		return 0, l.failure("change run", err)
	}
	return l.change(ctx, &r, len(data), func(ctx context.Context, tx *database.Tx, _ int64, made *int64) error {
		if err := r.update(ctx, tx, made, "bytes = bytes + ?", len(answers)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into run_answers (run, version, data) values (?, ?, ?)", r.ID, *made, data)
		return err
	})
}

// waiting returns an entry of the queue whose work changes the run and writes so many bytes.
func (r *Run) waiting(bytes int) *waiting {
	return &waiting{entry: &Entry{Tenant: r.Tenant}, row: "run " + r.ID, bytes: bytes}
}

// change has work change a run, and returns its new version.
func (l *Ledger) change(
	ctx context.Context, r *Run, bytes int,
	work func(ctx context.Context, tx *database.Tx, writer int64, made *int64) error,
) (version int64, err error) {
	made := new(int64) // which may be written after this has returned
	err = l.asWriter(ctx, r.waiting(bytes), func(ctx context.Context, tx *database.Tx, writer int64) error {
		return work(ctx, tx, writer, made)
	})
	if err != nil {
		return 0, l.failure("change run", err)
	}
	return *made, nil
}

// update sets columns of a run that has the version, and returns its new version.
func (r *Run) update(ctx context.Context, tx *database.Tx, made *int64, columns string, values ...any) error {
	values = append(values, r.Pending, r.Save, r.ID, r.Version)
	for _, save := range r.Unsure {
		values = append(values, save)
	}
	err := tx.Row(ctx, "update runs set "+columns+", pending = ?, save = ?, version = version + 1 "+
		"where id = ? and (version = ?"+strings.Repeat(" or save = ?", len(r.Unsure))+") returning version", values, made)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrChanged
	}
	return err
}

// RemoveRun removes a run and its events.
func (l *Ledger) RemoveRun(ctx context.Context, tenant, id string) error {
	return l.failure("remove run", l.enqueue(ctx, &waiting{entry: &Entry{Tenant: tenant}, row: "run " + id, again: true,
		work: func(ctx context.Context, tx *database.Tx) error {
			removed, err := tx.Exec(ctx, "delete from runs where id = ? and tenant = ?", id, clean(tenant))
			if err == nil && removed > 0 {
				_, err = tx.Exec(ctx, "delete from run_events where run = ?", id)
			}
			if err == nil && removed > 0 {
				_, err = tx.Exec(ctx, "delete from run_answers where run = ?", id)
			}
			return err
		}}))
}

// CancelRun asks the process that works on a run to cancel it.
func (l *Ledger) CancelRun(ctx context.Context, tenant, id string) error {
	return l.failure("cancel run", l.enqueue(ctx, &waiting{entry: &Entry{Tenant: tenant}, row: "run " + id,
		work: func(ctx context.Context, tx *database.Tx) error {
			_, err := tx.Exec(ctx, "update runs set cancel = 1 where id = ? and tenant = ? and writer is not null", id,
				clean(tenant))
			return err
		}}))
}

// Cancelled returns the ids of the runs on which this process works and that it is asked to cancel.
func (l *Ledger) Cancelled(ctx context.Context) (ids []string, err error) {
	err = l.database.View(ctx, func(tx *database.Tx) error {
		return tx.Rows(ctx, "select id from runs where writer = ? and cancel = 1", []any{l.writer.Load()},
			func(scan func(into ...any) error) error {
				var id string
				err := scan(&id)
				ids = append(ids, id)
				return err
			})
	})
	return ids, l.failure("read runs", err)
}

const selectRun = "select id, status, over, created, until, pending, session, version, writer, " +
	"(select until from writers where id = runs.writer), %s from runs where tenant = ?"

// Run returns a tenant's run, with or without its content. It fails with [ErrNotFound] if there is none, or no longer.
func (l *Ledger) Run(ctx context.Context, tenant, id string, whole bool) (found Run, err error) {
	content := "''"
	if whole {
		content = "content"
	}
	all, err := l.runs(ctx, tenant, fmt.Sprintf(selectRun, content)+" and id = ?", tenant, id)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err == nil && whole {
		all[0].Answers, err = l.answers(ctx, id, all[0].Version)
	}
	if err != nil {
		return Run{}, l.failure("read run", err)
	}
	return all[0], nil
}

// answers returns the answers that were added to a version of a run. If the run has changed since that version was
// read, they may be incomplete.
func (l *Ledger) answers(ctx context.Context, run string, version int64) (found [][]byte, err error) {
	err = l.database.View(ctx, func(tx *database.Tx) error {
		return tx.Rows(ctx, "select data from run_answers where run = ? and version <= ? order by version",
			[]any{run, version}, func(scan func(into ...any) error) error {
				var data string
				if err := scan(&data); err != nil {
					return err
				}
				one, err := l.unseal(data)
				found = append(found, one)
				return err
			})
	})
	return found, err
}

// Runs returns a tenant's runs without their contents, newest first.
func (l *Ledger) Runs(ctx context.Context, tenant string) ([]Run, error) {
	found, err := l.runs(ctx, tenant, fmt.Sprintf(selectRun, "''")+" order by created desc, id", tenant)
	return found, l.failure("read runs", err)
}

func (l *Ledger) runs(ctx context.Context, tenant, statement string, arguments ...any) (found []Run, err error) {
	arguments[0] = clean(tenant)
	err = l.database.View(ctx, func(tx *database.Tx) error {
		now, err := l.now(ctx, tx)
		if err != nil {
			return err
		}
		return tx.Rows(ctx, statement, arguments, func(scan func(into ...any) error) error {
			r := Run{Tenant: tenant}
			var over, created, until int64
			var writer, lease sql.NullInt64
			var content string
			err := scan(&r.ID, &r.Status, &over, &created, &until, &r.Pending, &r.Session, &r.Version, &writer, &lease, &content)
			if err != nil || over == 1 && until < now {
				return err
			}
			if r.Content, err = l.unseal(content); err != nil {
				return err
			}
			r.IsOver, r.Created = over == 1, time.UnixMilli(created).UTC()
			if until != 0 {
				r.Until = time.UnixMilli(until).UTC()
			}
			r.IsHeld = writer.Valid && lease.Valid && lease.Int64 >= now-overdue.Milliseconds()
			r.IsAbandoned = writer.Valid && !r.IsHeld
			found = append(found, r)
			return nil
		})
	})
	return found, err
}

// longWait is the age at which a run whose process is dead is removed, if no request has marked it as failed.
const longWait = 48 * time.Hour

type runKey struct{}

type heldRun struct {
	id      string
	version int64
}

// InRun returns a context in which calls with an effect are made for a run. [Ledger.Intend] refuses them once the run
// has another version, since another process has taken this one for dead.
func InRun(ctx context.Context, id string, version int64) context.Context {
	return context.WithValue(ctx, runKey{}, &heldRun{id, version})
}

func runIn(ctx context.Context) *heldRun {
	r, _ := ctx.Value(runKey{}).(*heldRun)
	return r
}

// check fails if the run has another version.
func (r *heldRun) check(ctx context.Context, tx *database.Tx) error {
	if r == nil {
		return nil
	}
	var same bool
	err := tx.Row(ctx, "select exists (select 1 from runs where id = ? and version = ?)", []any{r.id, r.version}, &same)
	if err == nil && !same {
		err = ErrChanged
	}
	return err
}

// NewSave returns a number for [Run].Save.
func NewSave() int64 { return newFence() | 1 }
