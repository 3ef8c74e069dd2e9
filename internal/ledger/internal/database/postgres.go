package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
)

// openPostgres opens the database with a URL. Its tables are in the schema "caisson".
func openPostgres(ctx context.Context, location string) (*DB, error) {
	config, err := pgx.ParseConfig(location)
	if err != nil { // whose text holds the URL without its password
		return nil, fmt.Errorf("%w: %w", ErrLocation, err)
	}
	// All of them are set by name, so that what the server, the role or the URL set otherwise makes no difference.
	for name, value := range map[string]string{
		"search_path": "caisson", "synchronous_commit": "on", "default_transaction_isolation": "read committed",
		"application_name": "caisson", "statement_timeout": "60000", "lock_timeout": "10000",
		"idle_in_transaction_session_timeout": "60000", "timezone": "UTC",
	} {
		config.RuntimeParams[name] = value
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	// A query that is given up is cancelled. By default, its connection would be closed, and a client that gives up many
	// searches would have the server start a process for each.
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelTime}
	}
	sockets := &sockets{open: map[*socket]struct{}{}}
	config.DialFunc = sockets.through(config.DialFunc)
	pool := sql.OpenDB(connector{stdlib.GetConnector(*config)})
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(time.Minute)
	db := &DB{kind: postgresKind, pool: pool, sockets: sockets}
	db.close = func() error {
		if db.reserving != nil {
			_ = db.reserving.Close() // it goes back to the pool, which ends its session
		}
		return pool.Close()
	}
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return db, nil
}

// connector connects although who asked for the connection has given up, for the next one who needs it: the server
// starts a process for each attempt.
type connector struct{ driver.Connector }

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	return c.Connector.Connect(context.WithoutCancel(ctx))
}

const (
	connections    = 8 // of one process
	connectTimeout = 10 * time.Second
	cancelTime     = 2 * time.Second // until a connection is closed whose query does not end when it is cancelled
)
