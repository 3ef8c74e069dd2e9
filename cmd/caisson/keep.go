package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/internal/records"
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

// folder returns the folder for all that is remembered, or "" for none.
func (s *stateFlag) folder() (string, error) {
	if s.given {
		return s.dir, nil
	}
	return records.StateDir(goruntime.GOOS, os.Getenv)
}

// records returns the folder of records, or "" for none.
func (s *stateFlag) records() (records.Folder, error) {
	dir, err := s.folder()
	if dir == "" || err != nil {
		return "", err
	}
	return records.In(dir), nil
}

// batches returns the folder of paused batches, or "" for none.
func (s *stateFlag) batches() (batches.Folder, error) {
	dir, err := s.folder()
	if dir == "" || err != nil {
		return "", err
	}
	return batches.In(dir), nil
}

// keptHelp is what the help of a command says that runs calls.
const keptHelp = `Caisson keeps the arguments and full results of calls for "caisson explain", in a state
folder that only the current user can read. --state-dir chooses another folder;
--state-dir "" keeps nothing.`

func (o *options) stateFlags(command *cobra.Command) {
	command.Flags().Var(&o.state, "state-dir",
		"store records for \"caisson explain\" in `DIR`; \"\" stores none (default: in the user's state folder)")
}

// ledger knows what the operator is told of calls once they have ended. Their records are the host's
// to keep. It is safe for concurrent use.
type ledger struct {
	host    *host
	problem error // why nothing is kept from the beginning; nil where that is wanted, or it is kept

	mu      sync.Mutex
	parents map[string]string // of calls that tools made
	failed  []tool.Record     // such calls, where the operator can do something about it
}

// Record implements [executor.Recorder].
func (l *ledger) Record(_ context.Context, entry executor.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if record := entry.Record; record.Parent != "" {
		l.parents[record.CallID] = record.Parent
		switch record.Result.Kind {
		case tool.Internal, tool.Denied, tool.UnknownTool:
			l.failed = append(l.failed, record)
		}
	}
	return nil
}

// kept reports whether there is something to explain.
func (l *ledger) kept() bool { return l.host.Keeps() }

// readOn says where the rest of a result is that was cut. A reference is a call's id, and
// the part's name where that is not its output.
func (l *ledger) readOn(cut tool.Cut) string {
	if !l.kept() {
		return "--max-output SIZE leaves more"
	}
	id, _, _ := strings.Cut(cut.Reference, ".")
	return "read on with " + l.host.options.outputCommand(id, cut.Part, cut.Kept)
}

// outputCommand returns the command that prints a part of a call's result.
func (o *options) outputCommand(id, part string, from int64) string {
	command := "caisson explain " + id + " --output"
	if part != partOutput {
		command += " --part " + quoted(part)
	}
	if from > 0 {
		command += fmt.Sprintf(" --from %d", from)
	}
	if o.state.given {
		command += " --state-dir " + quoted(o.state.dir)
	}
	return command
}

// quoted returns a word as a shell takes it, where it is one that a shell would take apart.
func quoted(word string) string {
	if word == "" || strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(`-_./\:`, r)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// close tells the person at the terminal if something was not kept.
func (l *ledger) close(env environment) {
	problem := firstOf(l.problem, l.host.CloseRecords())
	if problem != nil && !l.host.options.quiet {
		printHint(env.stderr, "a call was not kept for \"caisson explain\": "+problem.Error()+`; choose another folder with --state-dir DIR, or none with --state-dir ""`)
	}
}

// root returns the call of the model's below which a call was made.
func (l *ledger) root(callID string) string {
	for parent, ok := l.parents[callID]; ok; parent, ok = l.parents[callID] {
		callID = parent
	}
	return callID
}

// absolute returns a path that means the same from everywhere, if there is one.
func absolute(path string) string {
	if complete, err := filepath.Abs(path); err == nil {
		return complete
	}
	return path
}

// batchFailed is the status of a batch that could not be kept or answered. Its results are the
// records of the calls that have ended.
const batchFailed executor.Status = "failed"

// salvage shows the records of the calls that have ended, whatever it is that failed then: whoever
// does not know of them would have them made again. It returns the failure, and those of the host.
func (v *view) salvage(ended done, failures *failure, err error) error {
	if v.showRecords(ended) != nil {
		v.env.printLost(ended.Records)
	}
	var known *failure
	if !errors.As(err, &known) {
		known = &failure{exitFailed, messagesOf(err)}
	}
	if failures != nil {
		known = &failure{failures.code, append(failures.messages, known.messages...)}
	}
	return known
}

// showRecords shows records in the place of what a batch came to.
func (v *view) showRecords(ended done) error {
	results, err := encoded(list(ended.Records))
	if err != nil {
		return err
	}
	whole := *v
	whole.broken, whole.dialect = nil, nil // what could not be shown or said is left out
	return whole.end(outcome{Status: batchFailed, Batch: ended.ID, Results: results}, ended.Records)
}

// printLost prints records that cannot be written where they belong. It is not held back by --quiet.
func (e environment) printLost(records []tool.Record) {
	for _, record := range records {
		if text, err := encoded(record); err == nil {
			// Nothing can be done about a stderr that fails.
			_, _ = fmt.Fprintf(e.stderr, "caisson: record: %s\n", sanitiseLine(string(text)))
		}
	}
}
