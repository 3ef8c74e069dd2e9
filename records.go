package caisson

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	Dir  string // the directory that it was granted: that one, or one through which it is reached
}

// WriterTo returns a tool whose calls, with these context values, may write to a directory of the
// host's, or change the links that lead to it; false for none. All tools count that are loaded, since
// those that are called may call others. What a host keeps, no tool should be able to write to.
func (h *Host) WriterTo(dir string, values map[string]string) (Writer, bool, error) {
	writers := map[string]string{} // the first tool that may write to a directory
	var writable []string
	for _, entry := range h.registry.List() {
		loaded, ok := entry.Tool.(*runtime.Tool)
		if !ok {
			continue
		}
		for _, granted := range loaded.Writable(values) {
			if writers[granted] == "" {
				writers[granted], writable = entry.Name, append(writable, granted)
			}
		}
	}
	at, err := holding.Of(writable, dir)
	return Writer{writers[at], at}, at != "", err
}

// keepsApart reports whether a tool may write to where records are kept: it could forge them.
func (h *Host) keepsApart(values map[string]string) error {
	dir := string(h.ledger.folder)
	if dir == "" {
		return nil
	}
	writer, found, err := h.WriterTo(dir, values)
	switch {
	case err != nil:
		return fmt.Errorf("%s: it cannot be told: %w", dir, folder.Reason(err))
	case found:
		return fmt.Errorf("%s: %s may write to %s", dir, writer.Tool, writer.Dir)
	}
	return nil
}

// Keeps reports whether all calls that have ended were kept, as [Options.StateDir] asks for. It is false
// before the first session.
func (h *Host) Keeps() bool {
	h.ledger.mu.Lock()
	defer h.ledger.mu.Unlock()
	return h.ledger.opened && h.ledger.problem == nil
}

// CloseRecords ends the keeping of records, and makes room in their folder. It returns the first reason
// for which a call was not kept, which changed nothing about the call; nil where all were, and when it is
// called again. [Host.Close] does it, too.
func (h *Host) CloseRecords() error {
	if h.ledger == nil { // the opening failed
		return nil
	}
	return h.ledger.close()
}

// errRecordsClosed means that a call ended after [Host.CloseRecords].
var errRecordsClosed = errors.New("no records are kept any more")

// ledger keeps what calls came to, each as it ends. That it cannot changes nothing about the calls.
type ledger struct {
	folder records.Folder // "": nothing is kept
	tools  *registry.Registry
	next   executor.Recorder // nil: none

	mu      sync.Mutex
	keeper  *records.Keeper // nil before it is opened, where that failed, and once it is closed
	opened  bool
	closed  bool
	problem error // the first
}

// open opens the folder, once.
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
	keeper, closed := l.keeper, l.closed
	l.mu.Unlock()
	if keeper == nil && !closed {
		return nil // the folder could not be opened, which is said once
	}
	err := errRecordsClosed
	if keeper != nil {
		err = keeper.Keep(l.entry(ended))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problem == nil {
		l.problem = err
	}
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
		err := l.keeper.Close()
		if l.keeper = nil; l.problem == nil {
			l.problem = err
		}
	}
	return l.problem
}

// absolute returns a path that means the same from everywhere, if there is one.
func absolute(path string) string {
	if complete, err := filepath.Abs(path); err == nil {
		return complete
	}
	return path
}
