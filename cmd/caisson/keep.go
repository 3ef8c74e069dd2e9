package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/tool"
)

// stateFolder returns the folder for all stored state, or "" for none.
func (o *options) stateFolder() (string, error) {
	if o.stateDir != nil {
		return *o.stateDir, nil
	}
	return records.StateDir(goruntime.GOOS, os.Getenv)
}

// records returns the folder of records, or "" for none.
func (o *options) records() (records.Folder, error) {
	dir, err := o.stateFolder()
	if dir == "" || err != nil {
		return "", err
	}
	return records.In(dir), nil
}

// batches returns the folder of paused batches, or "" for none.
func (o *options) batches() (batches.Folder, error) {
	dir, err := o.stateFolder()
	if dir == "" || err != nil {
		return "", err
	}
	return batches.In(dir), nil
}

// keptHelp is part of the help of commands that run calls.
const keptHelp = `Caisson stores the arguments and full results of calls for "caisson explain", in a state
folder that only the current user can read. --state-dir chooses another folder;
--state-dir "" stores nothing.`

// stateFlag adds the flag for the state folder. use says what the command does in it.
func (o *options) stateFlag(command *cobra.Command, use string) {
	command.Flags().Func("state-dir", use+" (default: in the user's state folder)", pointedTo(&o.stateDir))
}

// readOn says where to find the rest of a truncated result. A reference is the call's id, followed
// by the part's name if it is not the output.
func (h *host) readOn(cut tool.Cut) string {
	if !h.Keeps() {
		return "raise the limit with --max-output SIZE"
	}
	id, _, _ := strings.Cut(cut.Reference, ".")
	return "read on with " + h.options.outputCommand(id, cut.Part, cut.Kept)
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
	if o.stateDir != nil {
		command += " --state-dir " + quoted(*o.stateDir)
	}
	return command
}

// quoted quotes a word for a shell if that is needed.
func quoted(word string) string {
	if word == "" || strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != filepath.Separator && !strings.ContainsRune("-_./:", r)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// toRun says to run a command, whose words are quoted for a shell.
func toRun(command string) string { return `run "` + command + `"` }

// absolute returns the absolute form of path, or path itself on failure.
func absolute(path string) string {
	if complete, err := filepath.Abs(path); err == nil {
		return complete
	}
	return path
}

// batchFailed is the status of a batch that could not be stored or printed. Its results are the
// records of the calls that have ended.
const batchFailed executor.Status = "failed"

// salvage prints the records of the calls that have ended after another failure. A caller that did
// not see them would have the calls run again. It returns the failure together with the host's
// failures.
func (v *view) salvage(ended executor.Report, failures *failure, err error) error {
	if v.showRecords(ended) != nil {
		v.o.printLost(ended.Records)
	}
	known, ok := errors.AsType[*failure](err)
	if !ok {
		known = &failure{exitFailed, messagesOf(err)}
	}
	if failures != nil {
		known = &failure{failures.code, append(failures.messages, known.messages...)}
	}
	return known
}

// showRecords prints records instead of the batch's outcome.
func (v *view) showRecords(ended executor.Report) error {
	results, err := encoded(list(ended.Records))
	if err != nil {
		return err
	}
	whole := *v
	whole.broken, whole.dialect = nil, nil // omit what could not be printed
	return whole.end(outcome{Status: batchFailed, Batch: ended.ID, Results: results}, ended.Records)
}

// printLost prints records that cannot be printed as output. --quiet does not suppress it.
func (e environment) printLost(records []tool.Record) {
	for _, record := range records {
		if text, err := encoded(record); err == nil {
			// Nothing can be done if stderr fails.
			_, _ = fmt.Fprintf(e.stderr, "caisson: record: %s\n", sanitiseLine(string(text)))
		}
	}
}
