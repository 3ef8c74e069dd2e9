package ledger

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// A process that runs calls is a writer, and has a lease. It renews the lease until it ends. When that is overdue,
// other processes take the writer for dead, remove it, and record its calls. A process that was only stopped, or cut
// off from the database, finds that it is no writer any more before it can run another call.
const (
	leaseTime  = 15 * time.Second
	renewEvery = leaseTime / 5
	// overdue is the extra time that a reader gives a lease. A reader cannot tell a dead writer from a database that
	// stood still for everyone.
	overdue = 2 * leaseTime
)

// ErrLease means that other processes have taken this one for dead, and have recorded its calls.
var ErrLease = errors.New("this process was taken for dead")

// register makes this process a writer.
func (l *Ledger) register(ctx context.Context) error {
	l.registering.Lock()
	defer l.registering.Unlock()
	if l.writer.Load() != 0 {
		return nil
	}
	var id int64
	err := l.database.Update(ctx, func(tx *database.Tx) error {
		now, err := l.now(ctx, tx)
		if err != nil {
			return err
		}
		// The next number may be one that another process still has, since an older copy of the database was restored.
		return tx.Row(ctx, "insert into writers (id, until) values (?, ?) returning id",
			[]any{newFence(), now + leaseTime.Milliseconds()}, &id)
	})
	if err != nil {
		l.failed.Store(true)
		return err
	}
	l.writer.Store(id)
	l.beating.Do(func() {
		l.maintained.Add(1)
		go l.beat(context.WithoutCancel(ctx))
	})
	return nil
}

// now returns the time in milliseconds by which leases are judged: PostgreSQL's, since clocks of machines differ.
func (l *Ledger) now(ctx context.Context, tx *database.Tx) (now int64, err error) {
	clock := l.database.Only("", "select (extract(epoch from clock_timestamp()) * 1000)::bigint")
	if clock == "" {
		return time.Now().UnixMilli(), nil
	}
	err = tx.Row(ctx, clock, nil, &now)
	return now, err
}

// renew renews the lease of a writer. No other process can remove the writer until the transaction ends.
func (l *Ledger) renew(ctx context.Context, tx *database.Tx, writer int64) error {
	now, err := l.now(ctx, tx)
	if err != nil {
		return err
	}
	changed, err := tx.Exec(ctx, "update writers set until = ? where id = ?", now+leaseTime.Milliseconds(), writer)
	if err == nil && changed == 0 {
		l.writer.CompareAndSwap(writer, 0)
		return ErrLease
	}
	return err
}

// beat renews the lease, writes what could not be written, and looks for writers that are dead, until the ledger is
// closed.
func (l *Ledger) beat(ctx context.Context) {
	defer l.maintained.Done()
	clock := time.NewTicker(renewEvery)
	defer clock.Stop()
	var steady, last time.Time // since when, and when the lease was last renewed
	for {
		select {
		case <-l.ended:
			return
		case <-clock.C:
		}
		err := l.beatOnce(ctx)
		now := time.Now()
		if err == nil && now.Sub(last) > leaseTime {
			steady = now // others, too, may have been cut off meanwhile
		}
		if err == nil {
			last = now
			l.writeLate()
			if now.Sub(steady) > leaseTime {
				err = l.settle(ctx, 0)
			}
		}
		if err != nil {
			l.options.Logger.WarnContext(ctx, "the ledger cannot be written", "err", err)
		}
	}
}

const (
	checkTime = 2 * time.Second // until a check fails
	// silentTime is the time after which a check asks the database, since it has answered nothing else meanwhile.
	silentTime = renewEvery + time.Second
)

var errSilent = errors.New("the database does not answer")

// Check returns why the ledger cannot be read or written, or nil. It tries to write if that has failed before, and to
// read if the database has been silent.
func (l *Ledger) Check(ctx context.Context) error {
	hasFailed := l.failed.Load()
	if !hasFailed && time.Since(l.database.LastAnswer()) < silentTime {
		return nil
	}
	done := l.checks.DoChan("", func() (any, error) { return nil, l.try(context.WithoutCancel(ctx), hasFailed) })
	over := time.NewTimer(checkTime)
	defer over.Stop()
	select {
	case tried := <-done:
		return l.failure("check", tried.Err)
	case <-over.C:
		return l.failure("check", errSilent)
	case <-ctx.Done():
		return l.failure("check", ctx.Err())
	}
}

func (l *Ledger) try(ctx context.Context, write bool) error {
	if !write {
		ctx, cancel := context.WithTimeout(ctx, leaseTime)
		defer cancel()
		return l.database.View(ctx, func(tx *database.Tx) error {
			_, err := l.now(ctx, tx)
			return err
		})
	}
	err := l.register(ctx)
	if err == nil {
		err = l.beatOnce(ctx)
	}
	if err == nil {
		err = l.database.Update(ctx, func(tx *database.Tx) error { return writeSome(ctx, tx) })
	}
	l.failed.Store(err != nil)
	return err
}

// writeSome writes about as much as a record has, and removes it again. Renewing a lease needs no space on a disk that
// is full.
func writeSome(ctx context.Context, tx *database.Tx) error {
	random := make([]byte, 16<<10)
	_, _ = rand.Read(random) // it never fails
	id := newFence()
	_, err := tx.Exec(ctx, "insert into run_events (run, id, name, last, data) values ('', ?, '', 0, ?)", id,
		hex.EncodeToString(random))
	if err == nil {
		_, err = tx.Exec(ctx, "delete from run_events where run = '' and id = ?", id)
	}
	return err
}

func (l *Ledger) beatOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	writer := l.writer.Load()
	err := l.database.Update(ctx, func(tx *database.Tx) error { return l.renew(ctx, tx, writer) })
	if errors.Is(err, ErrLease) {
		return l.register(ctx)
	}
	return err
}

// writeLate tries again to write what could not be written.
func (l *Ledger) writeLate() {
	for _, w := range l.late.take() {
		w.done = make(chan error, 1) // no caller waits for it
		l.queue.add(w)
	}
}

// removeWriters removes writers whose leases expired longer ago than late.
func (l *Ledger) removeWriters(ctx context.Context, late time.Duration) error {
	const some = "from writers where until < ? and id <> ?"
	var found bool
	arguments := []any{int64(0), l.writer.Load()}
	err := l.database.View(ctx, func(tx *database.Tx) error {
		now, err := l.now(ctx, tx)
		if err != nil {
			return err
		}
		arguments[0] = now - late.Milliseconds()
		return tx.Row(ctx, "select exists (select 1 "+some+")", arguments, &found)
	})
	if err != nil || !found {
		return err
	}
	return l.database.Update(ctx, func(tx *database.Tx) error {
		_, err := tx.Exec(ctx, "delete "+some, arguments...)
		return err
	})
}

// leave gives up the lease. Calls without a record are then left to others at once.
func (l *Ledger) leave(ctx context.Context) error {
	writer := l.writer.Load()
	if writer == 0 {
		return nil
	}
	return l.database.Update(ctx, func(tx *database.Tx) error {
		_, err := tx.Exec(ctx, "delete from writers where id = ?", writer)
		return err
	})
}
