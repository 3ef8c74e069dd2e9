package caisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/holding"
	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// Writer is a tool that may write to a directory.
type Writer struct {
	Tool string // its name
	Dir  string // the granted directory: the directory itself or one on the path to it
}

// WriterTo returns a tool whose calls, with these context values, may write to a host directory or
// change the links that lead to it, and false if there is none. It considers all loaded tools,
// because a called tool may call others. No tool should be able to write to what a host keeps.
func (h *Host) WriterTo(dir string, values map[string]string) (Writer, bool, error) {
	writers := h.writers(values)
	at, err := holding.Of(slices.Sorted(maps.Keys(writers)), dir)
	return Writer{writers[at], at}, at != "", err
}

// writers returns the first tool that may write to each directory that tools may write to.
func (h *Host) writers(values map[string]string) map[string]string {
	writers := map[string]string{}
	for _, entry := range h.registry.List() {
		loaded, ok := entry.Tool.(*runtime.Tool)
		if !ok {
			continue
		}
		for _, granted := range loaded.Writable(values) {
			if writers[granted] == "" {
				writers[granted] = entry.Name
			}
		}
	}
	return writers
}

// keepsApart returns an error if a tool may write to the folder of records and so forge them, or to those of compiled
// code and of the index, or below these, and so have the host run what it writes.
func (h *Host) keepsApart(values map[string]string) error {
	kept := h.kept
	if dir := string(h.ledger.folder); dir != "" {
		kept = append([]string{dir}, kept...)
	}
	if len(kept) == 0 {
		return nil
	}
	writers := h.writers(values)
	dirs := slices.Sorted(maps.Keys(writers))
	if h.apart.covers(dirs) {
		return nil
	}
	for _, dir := range dirs {
		for _, own := range kept {
			into, err := holding.Of([]string{dir}, own)
			if err == nil && into == "" {
				into, err = holding.Of([]string{own}, dir)
			}
			switch {
			case err != nil:
				return fmt.Errorf("%s: cannot determine whether a tool may write there: %w", own, folder.Reason(err))
			case into != "":
				return fmt.Errorf("%s: %s may write to %s", own, writers[dir], dir)
			}
		}
	}
	h.apart.remember(dirs)
	return nil
}

// apart remembers for which directories keepsApart last found nothing: it makes dozens of system calls, and a program
// may open a session for each batch. The zero value remembers none. It is safe for concurrent use.
type apart struct {
	mu   sync.Mutex
	dirs []string
	at   time.Time
}

// apartFor is how long a finding holds, since links in the paths may change.
const apartFor = time.Second

func (a *apart) covers(dirs []string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.at) < apartFor && slices.Equal(a.dirs, dirs)
}

func (a *apart) remember(dirs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dirs, a.at = dirs, time.Now()
}

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
	problem error // the first error
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
	keeper := l.keeper
	l.mu.Unlock()
	if keeper == nil {
		return nil // the folder could not be opened; that error is reported once
	}
	err := keeper.Keep(l.entry(ended))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem = cmp.Or(l.problem, err)
	return err
}

func (l *ledger) entry(ended executor.Entry) records.Entry {
	kept := records.Entry{Time: time.Now(), Record: ended.Record}
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
