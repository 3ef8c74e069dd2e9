package caisson

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"path/filepath"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/redact"
	"github.com/caisson-run/caisson/registry"
)

// Records configures how the records of calls are kept. Negative numbers are errors.
type Records struct {
	// Database is the URL of a PostgreSQL database, which starts with postgres://, in place of a database in
	// [Options.StateDir]. Several hosts can share it.
	Database string
	// KeepFor is how long records are kept. Zero keeps them until there are too many.
	KeepFor time.Duration
	// KeepCalls and KeepBytes bound what is kept: zero means 100,000 records, and 1 GiB of JSON. Tenants share the space
	// evenly: those that need more use what others do not need. The oldest go first.
	KeepCalls, KeepBytes int64
	// Relaxed answers calls before their records are durable. After a crash of the process, the newest records of
	// read-only calls are missing, and those of other calls have the kind unknown_outcome.
	Relaxed bool
	// NoWords saves the index of words, by which calls can be found by their arguments and results.
	NoWords bool
	// CheckpointKey signs the records. If nil, records in StateDir are signed with a key that is created there, and
	// records in a Database are not signed.
	CheckpointKey ed25519.PrivateKey
	// RunKeys encrypts the runs that a server stores, with their calls, results and events. It must be safe for
	// concurrent use. If nil, runs are stored unencrypted.
	RunKeys interface {
		Seal(content []byte) ([]byte, error)
		Open(sealed []byte) ([]byte, error)
	}
}

// Ledger returns where the host keeps its calls, or nil if it keeps none. It is for the servers of this module.
func (h *Host) Ledger(ctx context.Context) (*ledger.Ledger, error) { return h.recorder.open(ctx) }

// CloseRecords stops keeping records. It returns the first error that prevented a record from being kept, or nil if
// there was none or it is called again. Such an error does not affect the call. [Host.Close] calls CloseRecords.
func (h *Host) CloseRecords(ctx context.Context) error {
	if h.recorder == nil { // Open failed
		return nil
	}
	return h.recorder.close(ctx)
}

// recorder keeps each call in the ledger, which it opens when it is needed. It is an [executor.Ledger].
type recorder struct {
	state   string // "" with no options.Location to keep nothing
	options ledger.Options
	tools   *registry.Registry
	redact  redact.Rules

	mu      sync.Mutex
	kept    *ledger.Ledger // nil before open, and if open failed
	again   time.Time      // when it is opened again, after a failure
	failure error
	closed  bool
	problem error // the first error
}

// keeps reports whether records are to be kept.
func (r *recorder) keeps() bool { return r.state != "" || r.options.Location != "" }

// openAgain is the time after which a ledger that could not be opened is opened again, at least ten times as long as
// that took: calls wait meanwhile.
const openAgain = time.Second

// open opens the ledger, and returns it: nil if no records are to be kept. The end of ctx does not end it, since others
// need the ledger, too.
func (r *recorder) open(ctx context.Context) (*ledger.Ledger, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if began := time.Now(); r.keeps() && r.kept == nil && !r.closed && began.After(r.again) {
		r.kept, r.failure = ledger.OpenIn(context.WithoutCancel(ctx), r.state, r.options)
		r.again = time.Now().Add(max(openAgain, 10*time.Since(began)))
		r.problem = cmp.Or(r.problem, r.failure)
	}
	return r.kept, r.failure
}

// Intend implements [executor.Ledger].
func (r *recorder) Intend(ctx context.Context, entry executor.Entry) error {
	return r.write(ctx, entry, (*ledger.Ledger).Intend)
}

// Record implements [executor.Ledger].
func (r *recorder) Record(ctx context.Context, ended executor.Entry) error {
	return r.write(ctx, ended, (*ledger.Ledger).Append)
}

// keepTime is the longest time that a call waits for the ledger, before and after it runs.
const keepTime = 10 * time.Second

// write writes a call to the ledger. Nothing is written once records are closed.
func (r *recorder) write(
	ctx context.Context, entry executor.Entry, write func(*ledger.Ledger, context.Context, ledger.Entry) error,
) error {
	kept, err := r.open(ctx)
	if kept != nil {
		limited, cancel := context.WithTimeout(ctx, keepTime)
		defer cancel()
		err = write(kept, limited, r.entry(entry))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if ctx.Err() != nil { // the call has ended before it ran
		return err
	}
	r.problem = cmp.Or(r.problem, err)
	return err
}

func (r *recorder) entry(ended executor.Entry) ledger.Entry {
	entry, known := r.tools.Get(ended.Tool)
	ended = r.redact.Redact(ended, entry.Manifest)
	kept := ledger.Entry{
		Time: time.Now(), Record: ended.Record, Cause: ended.Cause, Tenant: ended.Tenant, User: ended.User,
		Session: ended.Session, Batch: ended.Batch, Intended: ended.Intended, Inputs: ended.Inputs,
	}
	if len(ended.Record.Cuts) > 0 {
		kept.Whole = &ended.Whole
	}
	if known {
		kept.Source, kept.Manifest = absolute(entry.Source), absolute(entry.Manifest.File)
	}
	return kept
}

// Claim implements [executor.Claimer].
func (r *recorder) Claim(ctx context.Context, key string, expires time.Time) (bool, error) {
	kept, err := r.open(ctx)
	if kept == nil {
		return false, cmp.Or(err, ledger.ErrClosed)
	}
	return kept.Claim(ctx, key, expires)
}

func (r *recorder) close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if r.kept != nil {
		r.problem = cmp.Or(r.problem, r.kept.Close(ctx))
	}
	return r.problem
}

// absolute returns the absolute form of path, or path itself on failure.
func absolute(path string) string {
	if complete, err := filepath.Abs(path); err == nil {
		return complete
	}
	return path
}
