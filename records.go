package caisson

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/ledger"
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
	// NoWords saves the index of words, by which calls can be found by their arguments and results.
	NoWords bool
}

// Keeps reports whether the records of all ended calls have been kept, as [Options.StateDir]
// requires. It is false before the first batch.
func (h *Host) Keeps() bool {
	h.recorder.mu.Lock()
	defer h.recorder.mu.Unlock()
	return h.recorder.opened && h.recorder.problem == nil
}

// CloseRecords stops keeping records. It returns the first error that prevented a record from being kept, or nil if
// there was none or it is called again. Such an error does not affect the call. [Host.Close] calls CloseRecords.
func (h *Host) CloseRecords(ctx context.Context) error {
	if h.recorder == nil { // Open failed
		return nil
	}
	return h.recorder.close(ctx)
}

// recorder keeps the record of each call as it ends. Failing to do so does not affect the call.
type recorder struct {
	state   string // "" with no options.Location to keep nothing
	options ledger.Options
	tools   *registry.Registry
	next    executor.Recorder // may be nil

	mu      sync.Mutex
	kept    *ledger.Ledger // nil before open, and if open failed
	opened  bool
	again   time.Time // when it is opened again, after a failure
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
		r.opened = true
		r.kept, r.failure = ledger.OpenIn(context.WithoutCancel(ctx), r.state, r.options)
		r.again = time.Now().Add(max(openAgain, 10*time.Since(began)))
		r.problem = cmp.Or(r.problem, r.failure)
	}
	return r.kept, r.failure
}

// Record implements [executor.Recorder].
func (r *recorder) Record(ctx context.Context, ended executor.Entry) error {
	err := r.keep(ctx, ended)
	if r.next != nil {
		err = errors.Join(err, r.next.Record(ctx, ended))
	}
	return err
}

func (r *recorder) keep(ctx context.Context, ended executor.Entry) error {
	kept, err := r.open(ctx)
	if kept == nil {
		return err
	}
	err = kept.Append(ctx, r.entry(ended))
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.problem = cmp.Or(r.problem, err)
	}
	return err
}

func (r *recorder) entry(ended executor.Entry) ledger.Entry {
	kept := ledger.Entry{
		Time: time.Now(), Record: ended.Record, Cause: ended.Cause, Tenant: ended.Tenant, User: ended.User,
		Session: ended.Session, Batch: ended.Batch,
	}
	if len(ended.Record.Cuts) > 0 {
		kept.Whole = &ended.Whole
	}
	if entry, ok := r.tools.Get(ended.Tool); ok {
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
