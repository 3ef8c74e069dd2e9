package database

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// poolLimit bounds the connections of the pool while PostgreSQL has no more for this process. The zero value bounds
// none. It is safe for concurrent use.
type poolLimit struct {
	mu    sync.Mutex
	ours  int       // connections that never come back to the pool
	until time.Time // zero while the pool may open all of its connections
}

// limitTime is the time until the pool tries again to open all of its connections.
const limitTime = 30 * time.Second

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
	d.limit.mu.Lock()
	defer d.limit.mu.Unlock()
	open := d.pool.Stats().OpenConnections
	if open <= d.limit.ours {
		return false
	}
	d.pool.SetMaxOpenConns(open)
	d.limit.until = time.Now().Add(limitTime)
	return true
}

// keeps notes that a connection does not come back to the pool.
func (p *poolLimit) keeps() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ours++
}

// raise has the pool open all of its connections again once the time is over.
func (d *DB) raise() {
	d.limit.mu.Lock()
	defer d.limit.mu.Unlock()
	if !d.limit.until.IsZero() && time.Now().After(d.limit.until) {
		d.pool.SetMaxOpenConns(connections)
		d.limit.until = time.Time{}
	}
}

// isTooMany reports whether PostgreSQL has as many connections as it, the database or the role may have.
func isTooMany(err error) bool {
	failure, ok := errors.AsType[*pgconn.PgError](err)
	return ok && failure.Code == "53300"
}
