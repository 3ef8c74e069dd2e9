package caisson

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/holding"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/runtime"
)

// Writer is a tool that may write to a directory.
type Writer struct {
	Tool string // its name
	Dir  string // the granted directory: the directory itself, one on the path to it, or one below it
}

// WriterTo returns a tool whose calls, with these context values, may write to the contents of a host directory, or
// change the links that lead to it, and false if there is none. The path may be that of a file. It considers all loaded
// tools, because a called tool may call others. No tool should be able to write to the host's own folders.
func (h *Host) WriterTo(path string, values map[string]string) (Writer, bool, error) {
	writers := h.writers(values)
	at, err := writable(slices.Sorted(maps.Keys(writers)), path)
	return Writer{writers[at], at}, at != "", err
}

// writable returns the first of dirs that holds the path or is below it, or "" if there is none.
func writable(dirs []string, path string) (string, error) {
	at, err := holding.Of(dirs, path)
	for _, dir := range dirs {
		if at != "" || err != nil {
			break
		}
		if at, err = holding.Of([]string{path}, dir); at != "" {
			at = dir
		}
	}
	return at, err
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

// checkKept returns an error if a tool may write to the folder of records and so forge them, or to those of compiled
// code and of the index, and so have the host run code that it writes.
func (h *Host) checkKept(values map[string]string) error {
	kept := h.kept
	if h.recorder.state != "" {
		kept = append([]string{ledger.In(h.recorder.state)}, kept...)
	}
	if len(kept) == 0 {
		return nil
	}
	writers := h.writers(values)
	dirs := slices.Sorted(maps.Keys(writers))
	if h.checked.covers(dirs) {
		return nil
	}
	for _, own := range kept {
		into, err := writable(dirs, own)
		switch {
		case err != nil:
			return fmt.Errorf("%s: whether a tool may write there cannot be determined: %w", own, folder.Reason(err))
		case into != "":
			return fmt.Errorf("%s: %s may write to %s, and could forge what is kept there: records of calls, or compiled code",
				own, writers[into], into)
		}
	}
	h.checked.remember(dirs)
	return nil
}

// checkedDirs remembers the directories for which checkKept last found nothing: it makes dozens of system calls, and a
// program may open a session for each batch. The zero value remembers none. It is safe for concurrent use.
type checkedDirs struct {
	mu   sync.Mutex
	dirs []string
	at   time.Time
}

// checkedFor is the time for which a finding is used. It is short, since links in the paths may change.
const checkedFor = time.Second

func (c *checkedDirs) covers(dirs []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.at) < checkedFor && slices.Equal(c.dirs, dirs)
}

func (c *checkedDirs) remember(dirs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirs, c.at = dirs, time.Now()
}
