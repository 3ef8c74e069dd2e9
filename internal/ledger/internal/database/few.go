package database

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// few says for how long no further connections are opened. The zero value opens as many as the pool may have. It is
// safe for concurrent use.
type few struct {
	mu    sync.Mutex
	ours  int       // connections that never come back to the pool
	until time.Time // zero while the pool may open all
}

// fewTime is the time until the pool tries again to open all of its connections.
const fewTime = 30 * time.Second

// conn returns a connection of the pool. While PostgreSQL has no more for this process, callers wait for one of those
// that it has.
func (d *DB) conn(ctx context.Context) (*sql.Conn, error) {
	for {
		d.raise()
		conn, err := d.pool.Conn(ctx)
		if !isTooMany(err) || !d.lower() {
			return conn, err
		}
	}
}

// lower has the pool open no more connections for a time. It returns false if there is none to wait for.
func (d *DB) lower() bool {
	d.few.mu.Lock()
	defer d.few.mu.Unlock()
	open := d.pool.Stats().OpenConnections
	if open <= d.few.ours {
		return false
	}
	d.pool.SetMaxOpenConns(open)
	d.few.until = time.Now().Add(fewTime)
	return true
}

// keeps notes that a connection does not come back to the pool.
func (f *few) keeps() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ours++
}

func (d *DB) raise() {
	d.few.mu.Lock()
	defer d.few.mu.Unlock()
	if !d.few.until.IsZero() && time.Now().After(d.few.until) {
		d.pool.SetMaxOpenConns(connections)
		d.few.until = time.Time{}
	}
}

// isTooMany reports whether PostgreSQL has as many connections as it, the database or the role may have.
func isTooMany(err error) bool {
	failure, ok := errors.AsType[*pgconn.PgError](err)
	return ok && failure.Code == "53300"
}
