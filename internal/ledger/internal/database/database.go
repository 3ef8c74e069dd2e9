// Package database opens SQLite and PostgreSQL, which can hold a ledger, and hides their differences.
//
// Statements are written once, with ? for their arguments. Both databases run the same text, except where [DB.Only]
// gives each its own.
package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The errors of this package, for errors.Is. Other errors are those of the database.
var (
	// ErrNewer means that a later version of Caisson has changed the tables.
	ErrNewer = errors.New("the ledger was written by a later version of Caisson; run that version")
	// ErrMoved means that the file of the ledger was removed or replaced while it was open.
	ErrMoved = errors.New("the file was removed or replaced")
	// ErrLocation means that a location is neither a folder nor the URL of a PostgreSQL database.
	ErrLocation = errors.New("not the URL of a PostgreSQL database")
)

// kind is one of the databases. Its text is the name of the folder that holds its migrations.
type kind string

const (
	sqliteKind   kind = "sqlite"
	postgresKind kind = "postgres"
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	kind      kind
	pool      *sql.DB      // of SQLite, the connections that only read
	using     sync.RWMutex // held for writing to close it
	reading   sync.RWMutex // held for writing to shorten the log of SQLite
	closed    bool         // written with both locks
	close     func() error
	reserving *sql.Conn // of PostgreSQL, what holds the reserved numbers
	sockets   *sockets  // of PostgreSQL
	limit     poolLimit
	answered  atomic.Int64 // when it has last ended a transaction, in nanoseconds since 1970
	unmoved   func() error // of SQLite, fails if the file is not there any more: using it would succeed

	// SQLite has one connection that writes, since a second would only wait for it. Its statements stay prepared;
	// pgx does the same for those of PostgreSQL.
	mu       sync.Mutex // held while it is used
	ends     atomic.Bool
	broken   error  // of the latest transaction
	log      string // the path of its log
	commits  int
	writer   *sql.Conn                       // nil with PostgreSQL
	renew    func(ctx context.Context) error // replaces the writer
	prepared map[string]*sql.Stmt
}

// Open opens the database at a location, creates its tables if there are none, and brings those of an earlier version
// up to date. A location that starts with postgres:// or postgresql:// is the URL of a database; any other is the path
// of a folder, which is created if necessary and must be private to this user.
func Open(ctx context.Context, location string) (*DB, error) {
	open := openSQLite
	if IsURL(location) {
		open = openPostgres
	}
	db, err := open(ctx, location)
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// IsURL reports whether a location is that of a PostgreSQL database, or of a database that is not supported.
func IsURL(location string) bool { return strings.Contains(location, "://") }

// GiveUpAfter has all that waits for PostgreSQL fail, and all that will, once the database has answered nothing for a
// time, until stop is called. With SQLite, all transactions fail after one that did, such as since another process has
// locked the file.
func (d *DB) GiveUpAfter(silence time.Duration) (stop func()) {
	if d.sockets == nil {
		d.ends.Store(true)
		return func() { d.ends.Store(false) }
	}
	return d.sockets.giveUpAfter(silence, &d.answered)
}

// LastAnswer returns when the database has last ended a transaction of this process.
func (d *DB) LastAnswer() time.Time { return time.Unix(0, d.answered.Load()) }

// Close closes the database, once transactions have ended.
func (d *DB) Close() error {
	d.using.Lock()
	defer d.using.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return d.close()
}

// Reserve reports whether no other process has reserved a number, and reserves it until the database is closed. A
// process that loses its connection loses its number. With SQLite, all processes may have the same.
func (d *DB) Reserve(ctx context.Context, number int64) (free bool, err error) {
	if d.kind == sqliteKind {
		return true, nil
	}
	if d.reserving == nil {
		if d.reserving, err = d.pool.Conn(ctx); err != nil {
			return false, err
		}
		d.limit.keeps()
	}
	err = d.reserving.QueryRowContext(ctx, "select pg_try_advisory_lock($1, $2)", advisory, number).Scan(&free)
	return free, err
}

// advisory is the first of two numbers that name our locks in PostgreSQL, which other programs do not use.
const advisory = 0x63616973

// Only returns the text for this database.
func (d *DB) Only(sqlite, postgres string) string {
	if d.kind == postgresKind {
		return postgres
	}
	return sqlite
}

// Update runs work in a transaction, and commits it unless work fails. A committed transaction survives the loss of
// power. Of SQLite's transactions one runs at a time; those of PostgreSQL must lock the rows that they depend on. The
// end of ctx ends no transaction that has begun, so work must be short.
func (d *DB) Update(ctx context.Context, work func(tx *Tx) error) error {
	if d.kind == postgresKind {
		// A process may be suspended, or its machine lose its power. All others would wait for the rows that it has locked.
		return d.onPool(ctx, "begin; set local idle_in_transaction_session_timeout = 5000", true, work)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	if err := d.unmoved(); err != nil {
		return err
	}
	if d.ends.Load() && d.broken != nil {
		return d.broken
	}
	if d.writer == nil { // it broke, and another could not be opened, such as on a full disk
		if err := d.renew(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	_, broken, err := transact(ctx, &Tx{d, d.writer, d.prepared, true}, "begin immediate", work)
	if broken {
		err = errors.Join(err, d.renew(context.WithoutCancel(ctx)))
	}
	if d.broken = nil; IsDown(err) {
		d.broken = err
	}
	if d.commits++; err == nil && d.commits%shortenAfter == 0 {
		d.shorten(context.WithoutCancel(ctx))
	}
	return err
}

// SQLite's log grows for as long as there is any reader, and readers can overlap for ever. So after every shortenAfter
// transactions, the log is looked at, and beyond maxLog bytes, it is emptied while nobody in this process reads.
const (
	shortenAfter = 64
	maxLog       = 16 << 20
)

// shorten empties the log if it is long. If that fails, it is tried again: the transaction before it is durable
// without. Readers of other processes may prevent it, and nothing waits for them. The caller must hold d.mu.
func (d *DB) shorten(ctx context.Context) {
	if info, err := os.Stat(d.log); err != nil || info.Size() < maxLog {
		return
	}
	d.reading.Lock()
	defer d.reading.Unlock()
	for _, statement := range []string{
		"pragma busy_timeout = 0", "pragma wal_checkpoint(truncate)", fmt.Sprint("pragma busy_timeout = ", busyTimeout),
	} {
		_, _ = d.writer.ExecContext(ctx, statement)
	}
}

var errClosed = errors.New("the database is closed")

// View runs work in a transaction that reads one state of the database.
func (d *DB) View(ctx context.Context, work func(tx *Tx) error) error {
	return d.onPool(ctx, d.Only("begin", "begin isolation level repeatable read read only"), false, work)
}

// Query is a prepared query, which is run outside of a transaction. It is safe for concurrent use, and ends with the
// database.
type Query struct {
	db        *DB
	statement *sql.Stmt
}

// Prepare prepares a query.
func (d *DB) Prepare(ctx context.Context, text string) (Query, error) {
	statement, err := d.pool.PrepareContext(ctx, d.numbered(text))
	return Query{d, statement}, err
}

// Row reads the first row. The error wraps [sql.ErrNoRows] if there is none.
func (q Query) Row(ctx context.Context, arguments []any, into ...any) error {
	d := q.db
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	return q.statement.QueryRowContext(ctx, arguments...).Scan(into...)
}

// Rows calls each for every row until it fails. each gets the function that reads the row.
func (q Query) Rows(ctx context.Context, arguments []any, each func(scan func(into ...any) error) error) error {
	leave, err := q.db.enter()
	if err != nil {
		return err
	}
	defer leave()
	rows, err := q.statement.QueryContext(ctx, arguments...)
	return eachRow(rows, err, each)
}

// enter keeps the database open until leave is called.
func (d *DB) enter() (leave func(), err error) {
	d.using.RLock()
	d.reading.RLock()
	leave = func() {
		d.reading.RUnlock()
		d.using.RUnlock()
	}
	switch {
	case d.closed:
		err = errClosed
	case d.unmoved != nil:
		err = d.unmoved()
	}
	if err != nil {
		leave()
	}
	return leave, err
}

// Limit sets how many connections are used at a time, which stay open. SQLite has one more, which writes.
func (d *DB) Limit(connections int) {
	d.pool.SetMaxOpenConns(connections)
	d.pool.SetMaxIdleConns(connections)
}

func (d *DB) onPool(ctx context.Context, begin string, whole bool, work func(tx *Tx) error) error {
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	for range connections { // idle ones may have broken, such as when the server was restarted
		begun, broken, err := d.onConn(ctx, begin, whole, work)
		if err == nil || begun || !broken {
			return err
		}
	}
	_, _, err = d.onConn(ctx, begin, whole, work)
	return err
}

func (d *DB) onConn(
	ctx context.Context, begin string, whole bool, work func(tx *Tx) error,
) (begun, broken bool, err error) {
	conn, err := d.conn(ctx)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	begun, broken, err = transact(ctx, &Tx{db: d, conn: conn, whole: whole}, begin, work)
	if broken {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool closes it
	}
	return begun, broken, err
}

// transact runs work in a transaction. The end of ctx does not end the end of the transaction, nor the beginning of one
// that writes: it would be unknown whether they took effect. A connection that may still be in a transaction is broken,
// and must not be used again. If the transaction has not begun, work was not called.
func transact(ctx context.Context, tx *Tx, begin string, work func(tx *Tx) error) (begun, broken bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, false, err
	}
	whole := context.WithoutCancel(ctx)
	_, err = tx.conn.ExecContext(tx.until(ctx), begin)
	if begun = err == nil; begun {
		err = work(tx)
	}
	if err == nil {
		_, err = tx.conn.ExecContext(whole, "commit")
	}
	if err == nil {
		tx.db.answered.Store(time.Now().UnixNano())
		return true, false, nil
	}
	_, undone := tx.conn.ExecContext(whole, "rollback")
	return begun, undone != nil, err
}

// Tx is a transaction. It is not safe for concurrent use.
type Tx struct {
	db       *DB
	conn     *sql.Conn
	prepared map[string]*sql.Stmt // nil to prepare none
	whole    bool                 // the end of a context does not end its statements
}

// until returns the context that ends a statement.
func (t *Tx) until(ctx context.Context) context.Context {
	if t.whole {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// Exec runs a statement, and returns how many rows it has changed.
func (t *Tx) Exec(ctx context.Context, text string, arguments ...any) (changed int64, err error) {
	result, err := t.exec(ctx, text, arguments)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t *Tx) exec(ctx context.Context, text string, arguments []any) (sql.Result, error) {
	ctx = t.until(ctx)
	statement, err := t.statement(ctx, text)
	if statement != nil {
		return statement.ExecContext(ctx, arguments...)
	}
	if err != nil {
		return nil, err
	}
	return t.conn.ExecContext(ctx, t.db.numbered(text), arguments...)
}

// Row reads the first row of a query. The error wraps [sql.ErrNoRows] if there is none.
func (t *Tx) Row(ctx context.Context, text string, arguments []any, into ...any) error {
	ctx = t.until(ctx)
	statement, err := t.statement(ctx, text)
	if statement != nil {
		return statement.QueryRowContext(ctx, arguments...).Scan(into...)
	}
	if err != nil {
		return err
	}
	return t.conn.QueryRowContext(ctx, t.db.numbered(text), arguments...).Scan(into...)
}

// Rows calls each for every row of a query until it fails. each gets the function that reads the row.
func (t *Tx) Rows(
	ctx context.Context, text string, arguments []any, each func(scan func(into ...any) error) error,
) error {
	rows, err := t.conn.QueryContext(t.until(ctx), t.db.numbered(text), arguments...)
	return eachRow(rows, err, each)
}

// eachRow calls each for every row of a query, which has returned an error if there are none.
func eachRow(rows *sql.Rows, failed error, each func(scan func(into ...any) error) error) (err error) {
	if failed != nil {
		return failed
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// statement returns the prepared form of a statement, or nil if this connection prepares none. Only statements of
// fixed texts may be run in Update, since each is kept.
func (t *Tx) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if t.prepared == nil {
		return nil, nil
	}
	if found := t.prepared[text]; found != nil {
		return found, nil
	}
	statement, err := t.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	t.prepared[text] = statement
	return statement, nil
}

// numbered returns a statement with the arguments as the database names them. No text in a statement holds a ?.
func (d *DB) numbered(text string) string {
	if d.kind != postgresKind {
		return text
	}
	parts := strings.Split(text, "?")
	var b strings.Builder
	for i, part := range parts {
		if b.WriteString(part); i < len(parts)-1 {
			b.WriteString("$" + strconv.Itoa(i+1))
		}
	}
	return b.String()
}

//go:embed schema
var schemas embed.FS

// migrate runs the migrations that the tables lack, all in one transaction. A migration is a file that is named by its
// version, counted from 1.
func (d *DB) migrate(ctx context.Context) error {
	steps, err := fs.Glob(schemas, "schema/"+string(d.kind)+"/*.sql")
	if err != nil {
		return err
	}
	return d.Update(ctx, func(tx *Tx) error {
		found, err := tx.version(ctx)
		switch {
		case err != nil:
			return err
		case found > len(steps):
			return fmt.Errorf("%w: its tables have version %d, and this one knows %d", ErrNewer, found, len(steps))
		}
		for version := found + 1; version <= len(steps); version++ {
			step, err := schemas.ReadFile(fmt.Sprintf("schema/%s/%d.sql", d.kind, version))
			if err != nil {
				return err
			}
			if _, err := tx.conn.ExecContext(ctx, string(step)); err != nil {
				return fmt.Errorf("version %d of the tables: %w", version, err)
			}
		}
		if found == len(steps) {
			return nil
		}
		_, err = tx.conn.ExecContext(ctx, fmt.Sprintf("update version set number = %d", len(steps)))
		return err
	})
}

// version returns the version of the tables, 0 for none. It lets one process at a time continue.
func (t *Tx) version(ctx context.Context) (version int, err error) {
	if t.db.kind == postgresKind {
		if _, err := t.conn.ExecContext(ctx, "select pg_advisory_xact_lock($1, 0)", advisory); err != nil {
			return 0, err
		}
		if _, err := t.conn.ExecContext(ctx, "create schema if not exists caisson"); err != nil {
			return 0, err
		}
	}
	if _, err := t.conn.ExecContext(ctx, "create table if not exists version (number integer not null)"); err != nil {
		return 0, err
	}
	err = t.conn.QueryRowContext(ctx, "select number from version").Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = t.conn.ExecContext(ctx, "insert into version (number) values (0)")
	}
	return version, err
}
