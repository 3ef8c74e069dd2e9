package main

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/cmd/caisson/internal/records"
	"github.com/caisson-run/caisson/tool"
)

// stateFlag is the folder for what the command remembers, where "" means none and no flag
// at all the default.
type stateFlag struct {
	dir   string
	given bool
}

func (s *stateFlag) String() string { return "" }
func (s *stateFlag) Type() string   { return "dir" }

// Set notes the folder.
func (s *stateFlag) Set(text string) error {
	s.dir, s.given = text, true
	return nil
}

// records returns the folder of records, or "" for none.
func (s *stateFlag) records() (records.Folder, error) {
	if s.given {
		if s.dir == "" {
			return "", nil
		}
		return records.In(s.dir), nil
	}
	dir, err := records.StateDir(goruntime.GOOS, os.Getenv)
	if err != nil {
		return "", err
	}
	return records.In(dir), nil
}

func (o *options) stateFlags(command *cobra.Command) {
	command.Flags().Var(&o.state, "state-dir",
		"keep the records of calls, for \"caisson explain\", below `DIR`; \"\" keeps none (default: in the user's folder for the state of programs)")
}

// keep notes what calls came to for those who ask later, and reports whether it could.
// That it could not changes nothing about the calls.
func (h *host) keep(env environment, done []tool.Record) bool {
	folder, err := h.options.state.records()
	if err == nil && folder == "" {
		return false
	}
	if err == nil {
		err = folder.Keep(h.entries(done))
	}
	if err == nil {
		return true
	}
	if !h.options.quiet {
		printHint(env.stderr, "the call was not kept for \"caisson explain\": "+err.Error()+`; choose another folder with --state-dir DIR, or none with --state-dir ""`)
	}
	return false
}

func (h *host) entries(done []tool.Record) []records.Entry {
	now := time.Now()
	entries := make([]records.Entry, len(done))
	for i, record := range done {
		entries[i] = records.Entry{Time: now, Record: record}
		if entry, ok := h.registry.Get(record.Function.Name); ok {
			entries[i].Source, entries[i].Manifest = absolute(entry.Source), absolute(entry.Manifest.File)
		}
	}
	return entries
}

// absolute returns a path that means the same from everywhere, if there is one.
func absolute(path string) string {
	if complete, err := filepath.Abs(path); err == nil {
		return complete
	}
	return path
}
