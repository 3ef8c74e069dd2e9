// Package ledger keeps what must outlive a process: the records of calls, so that they can be found, explained and
// proved after the process that made them has ended; and [Documents], such as tokens and agents.
//
//	kept, err := ledger.Open(ctx, ledger.Options{Location: "/var/lib/caisson"})
//	err = kept.Append(ctx, entry)           // returns when the entry is durable
//	page, err := kept.Calls(ctx, ledger.Filter{Tool: "fetch_page", Denied: true})
//	report, err := kept.Verify(ctx)
//
// A ledger is in a folder, as an SQLite database, or in a PostgreSQL database. Any number of processes may use it at
// the same time.
package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// The errors of this package, for errors.Is. Other errors are those of the database or the operating system.
var (
	ErrClosed    = errors.New("the ledger is closed")
	ErrNotFound  = errors.New("there is no such record")
	ErrAmbiguous = errors.New("several records match the id")
	ErrID        = errors.New("not a call id or a prefix of one")
	ErrTooLarge  = errors.New("the record is too large to keep")
	ErrDamaged   = errors.New("the record is damaged")
	ErrKept      = errors.New("there is a record of this call")
	ErrFilter    = errors.New("no calls can be found in this way")
	ErrKey       = errors.New("not a key for checkpoints")
)

// Error is the error of all functions of this package.
type Error struct {
	Op    string // such as "open" or "append"
	Where string // the location, without a password
	Err   error
}

// Error returns the operation, the location and the reason.
func (e *Error) Error() string { return e.Op + " " + e.Where + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Options configures [Open]. Negative numbers are errors.
type Options struct {
	// Location is the path of a folder, which must be accessible only to this user, or the URL of a PostgreSQL
	// database, which starts with postgres://.
	Location string
	// KeepFor is how long the records of calls are kept. Zero keeps them until there are too many.
	KeepFor time.Duration
	// KeepCalls and KeepBytes bound the records that are kept: zero means 100,000, and 1 GiB of their JSON. Tenants share
	// the space evenly; those that need more use what the others do not need. The oldest are removed first.
	KeepCalls int64
	KeepBytes int64
	// Relaxed has Append return before the entry is durable. Intents and keys are durable first, as always.
	Relaxed bool
	// NoWords saves the index of words: calls cannot be found by what is in their arguments and results.
	NoWords bool
	// Key signs the checkpoints. Nil uses the key in the folder, which is made at first; without a folder, nothing is
	// signed.
	Key ed25519.PrivateKey
	// RunKeys encrypts stored runs. Nil stores them unencrypted.
	RunKeys Sealer
	// Logger gets what goes wrong while old records are removed. Nil discards it.
	Logger *slog.Logger
}

// Ledger is an open ledger. It is safe for concurrent use. It must be closed.
type Ledger struct {
	options  Options
	where    string
	database *database.DB
	key      ed25519.PrivateKey // nil to sign nothing
	chain    int64

	queue      turns
	ended      chan struct{} // closed when the queue has been written
	added      added
	due        chan struct{} // gets one when there may be something to prune or to sign
	maintained sync.WaitGroup

	closed atomic.Bool

	names names // used by the writer alone

	writer      atomic.Int64 // the number of this process; 0 until it is needed
	registering sync.Mutex   // held to get one
	beating     sync.Once
	late        late
	failed      atomic.Bool // the latest attempt to write
	checks      singleflight.Group
	keys        newKeys

	runsForgotten atomic.Int64 // when runs of all tenants were last looked at, in milliseconds
}

// Open opens the ledger at a location, and creates it if there is none. The end of ctx does not end what has begun.
func Open(ctx context.Context, options Options) (*Ledger, error) {
	l := &Ledger{options: options, where: shown(options.Location)}
	if err := l.complete(); err != nil {
		return nil, l.failure("open", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, l.failure("open", err)
	}
	ctx = context.WithoutCancel(ctx) // the caller may be a client that gives up, and the ledger is everybody's
	var err error
	if l.database, err = database.Open(ctx, options.Location); err != nil {
		return nil, l.failure("open", err)
	}
	if err = l.loadKey(); err == nil {
		l.chain, err = l.takeChain(ctx)
	}
	if err != nil {
		return nil, l.failure("open", errors.Join(err, l.database.Close()))
	}
	l.queue.of, l.ended, l.due = map[string][]*waiting{}, make(chan struct{}), make(chan struct{}, 1)
	l.queue.some.L = &l.queue.mu
	go l.write(ctx)
	l.maintained.Add(1)
	go l.maintain(ctx)
	if err := l.settle(ctx, overdue); err != nil {
		l.options.Logger.ErrorContext(ctx, "calls of processes that have ended cannot be recorded", "err", err)
	}
	return l, nil
}

// Location returns the location in the options.
func (l *Ledger) Location() string { return l.options.Location }

// complete checks the options and replaces zeros by their defaults.
func (l *Ledger) complete() error {
	o := &l.options
	switch {
	case o.Location == "":
		return errors.New("no location")
	case o.KeepFor < 0 || o.KeepCalls < 0 || o.KeepBytes < 0:
		return fmt.Errorf("a negative limit: %s, %d calls, %d bytes", o.KeepFor, o.KeepCalls, o.KeepBytes)
	case o.Key != nil && len(o.Key) != ed25519.PrivateKeySize:
		return fmt.Errorf("%w: it has %d bytes", ErrKey, len(o.Key))
	}
	if o.KeepCalls == 0 {
		o.KeepCalls = 100_000
	}
	if o.KeepBytes == 0 {
		o.KeepBytes = 1 << 30
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// lastPrune is how long the ledger is pruned at most when it is closed: the next process goes on.
const lastPrune = time.Second

// lastWait is the time for which a database may answer nothing while the ledger is closed.
const lastWait = 5 * time.Second

// Close waits until what was appended is written, signs a last checkpoint, and closes the ledger. Entries are lost if
// the database does not answer for some seconds. A second call does nothing.
func (l *Ledger) Close(ctx context.Context) error {
	if l.closed.Swap(true) {
		return nil
	}
	defer l.database.GiveUpAfter(lastWait)()
	l.writeLate()
	l.queue.close()
	<-l.ended
	l.maintained.Wait()
	err := l.leave(ctx)
	if l.added.unsigned.Load() > 0 {
		pruning, cancel := context.WithTimeout(ctx, lastPrune)
		if _, failed := l.Prune(pruning); !errors.Is(failed, context.DeadlineExceeded) {
			err = errors.Join(err, failed)
		}
		cancel()
		err = errors.Join(err, l.checkpoint(ctx))
	}
	return l.failure("close", errors.Join(err, l.database.Close()))
}

// failure adds the operation and the location to an error.
func (l *Ledger) failure(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*Error](err); ours {
		return err
	}
	return &Error{op, l.where, err}
}
