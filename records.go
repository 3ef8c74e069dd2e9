package caisson

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/registry"
)

// Keeps reports whether the records of all ended calls have been kept, as [Options.StateDir]
// requires. It is false before the first session.
func (h *Host) Keeps() bool {
	h.ledger.mu.Lock()
	defer h.ledger.mu.Unlock()
	return h.ledger.opened && h.ledger.problem == nil
}

// CloseRecords stops keeping records and removes old ones from their folder. It returns the first
// error that prevented a record from being kept, or nil if there was none or it is called again.
// Such an error does not affect the call. [Host.Close] calls CloseRecords.
func (h *Host) CloseRecords() error {
	if h.ledger == nil { // Open failed
		return nil
	}
	return h.ledger.close()
}

// ledger keeps the record of each call as it ends. Failing to do so does not affect the call.
type ledger struct {
	folder records.Folder // "" to keep nothing
	tools  *registry.Registry
	next   executor.Recorder // may be nil

	mu      sync.Mutex
	keeper  *records.Keeper // nil before open, and if open failed; fails after close
	opened  bool
	closed  bool
	problem error             // the first error
	tenants map[string]string // of kept calls, by id, as far as they have been read
}

// open opens the folder once.
func (l *ledger) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder == "" || l.opened || l.closed {
		return
	}
	l.opened = true
	l.keeper, l.problem = l.folder.Open()
}

// Record implements [executor.Recorder].
func (l *ledger) Record(ctx context.Context, ended executor.Entry) error {
	err := l.keep(ended)
	if l.next != nil {
		err = errors.Join(err, l.next.Record(ctx, ended))
	}
	return err
}

func (l *ledger) keep(ended executor.Entry) error {
	l.mu.Lock()
	keeper, problem := l.keeper, l.problem
	l.mu.Unlock()
	if keeper == nil {
		return problem // with which the folder could not be opened
	}
	err := keeper.Keep(l.entry(ended))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem = cmp.Or(l.problem, err)
	return err
}

func (l *ledger) entry(ended executor.Entry) records.Entry {
	kept := records.Entry{Time: time.Now(), Record: ended.Record, Tenant: ended.Tenant}
	if len(ended.Record.Cuts) > 0 {
		kept.Whole = &ended.Whole
	}
	if entry, ok := l.tools.Get(ended.Tool); ok {
		kept.Source, kept.Manifest = absolute(entry.Source), absolute(entry.Manifest.File)
	}
	return kept
}

func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.keeper != nil {
		l.problem = cmp.Or(l.problem, l.keeper.Close())
	}
	return l.problem
}

// absolute returns the absolute form of path, or path itself on failure.
func absolute(path string) string {
	if complete, err := filepath.Abs(path); err == nil {
		return complete
	}
	return path
}
