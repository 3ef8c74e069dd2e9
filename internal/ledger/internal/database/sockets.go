package database

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var errGivenUp = errors.New("the database did not answer while the ledger was closed")

// sockets are the open connections to PostgreSQL. Closing them ends all queries, even if the database does not answer.
// It is safe for concurrent use.
type sockets struct {
	mu      sync.Mutex
	open    map[*socket]struct{}
	givenUp bool
}

// socket is one of the connections.
type socket struct {
	net.Conn
	of *sockets
}

// Close implements [net.Conn].
func (s *socket) Close() error {
	s.of.mu.Lock()
	delete(s.of.open, s)
	s.of.mu.Unlock()
	return s.Conn.Close()
}

// through returns a function that dials and adds the connection to the sockets.
func (s *sockets) through(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.givenUp {
			return nil, errors.Join(errGivenUp, conn.Close())
		}
		made := &socket{conn, s}
		s.open[made] = struct{}{}
		return made, nil
	}
}

// giveUp closes all connections, and refuses new ones.
func (s *sockets) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.givenUp = true
	for one := range s.open {
		_ = one.Conn.Close()
	}
	clear(s.open)
}

// giveUpAfter gives up once the database has answered nothing for a time, until stop is called. answered changes with
// each answer.
func (s *sockets) giveUpAfter(silence time.Duration, answered *atomic.Int64) (stop func()) {
	ended := make(chan struct{})
	go func() {
		clock := time.NewTicker(silence)
		defer clock.Stop()
		for before := answered.Load(); ; {
			select {
			case <-ended:
				return
			case <-clock.C:
			}
			now := answered.Load()
			if now == before {
				s.giveUp()
				return
			}
			before = now
		}
	}()
	return func() { close(ended) }
}
