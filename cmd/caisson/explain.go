package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/cmd/caisson/internal/records"
	"github.com/caisson-run/caisson/tool"
)

const explainHelp = `Show what an earlier call did: what it was asked, what came of it, what it took, what it
asked of the host, and for each request that was refused the rule that refused it and
what would allow it.

CALL-ID is the call_id of a record, which "caisson call" prints when a call fails. The
first 8 characters are enough, or more where several calls have those. "call" and
"batch" keep the newest 500 records, and at most 64 MiB of them, for this user alone.`

func newExplain(env environment) *cobra.Command {
	var o options
	var last bool
	command := &cobra.Command{
		Use:     "explain CALL-ID | --last",
		Short:   "show what a call did, and what would allow what was denied",
		Long:    explainHelp,
		Example: "  caisson explain 0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47\n  caisson explain --last --json",
		Args:    positional(0, 1, "a CALL-ID"),
		RunE: func(command *cobra.Command, args []string) error {
			if last == (len(args) == 1) {
				return usageError(command, "explain needs a CALL-ID or --last, and not both")
			}
			return o.explain(env, append(args, "")[0])
		},
	}
	command.Flags().BoolVar(&last, "last", false, "show the newest call")
	o.stateFlags(command)
	o.outputFlags(command, "print one JSON object: the record as it was, and what explains it")
	return command
}

// explained is what explain prints as JSON.
type explained struct {
	Time        time.Time       `json:"time"`
	Source      string          `json:"source"`
	Manifest    string          `json:"manifest"`
	Record      json.RawMessage `json:"record"`
	Explanation explanation     `json:"explanation"`
}

// explanation says in words what a record holds.
type explanation struct {
	Outcome string   `json:"outcome"` // "success", or the kind of the failure
	Message string   `json:"message"` // what the caller was told; empty for a success
	Ran     bool     `json:"ran"`     // false: the call was refused before the tool began
	Hints   []string `json:"hints"`   // what to do, for the call as a whole
	Denials []denied `json:"denials"`
}

// denied is one refused request.
type denied struct {
	Request string   `json:"request"` // permission and value
	Rule    string   `json:"rule"`
	Hints   []string `json:"hints"` // what would allow it; empty where nothing would
}

// explain prints the call with an id; without one the newest.
func (o *options) explain(env environment, id string) error {
	folder, err := o.state.records()
	if err == nil && folder == "" {
		err = errors.New(`--state-dir "" names no folder`)
	}
	if err != nil {
		return failed(exitUsage, err.Error(), "name the folder with --state-dir DIR")
	}
	entry, err := find(folder, id)
	if err != nil {
		return err
	}
	if !o.json {
		return env.print(entryText(entry, explain(entry)))
	}
	wire, err := entry.Wire()
	if err != nil {
		return err
	}
	return env.printJSON(explained{entry.Time, entry.Source, entry.Manifest, wire, explain(entry)})
}

// find returns the call with an id; without one the newest.
func find(folder records.Folder, id string) (records.Entry, error) {
	newest, err := folder.Newest(5)
	if err != nil {
		return records.Entry{}, failed(exitUsage, err.Error(), "name another folder with --state-dir DIR")
	}
	if len(newest) == 0 {
		return records.Entry{}, failed(exitUsage, "no call has been kept in "+string(folder),
			`"caisson call" and "caisson batch" keep what they ran; name another folder with --state-dir DIR`)
	}
	if id == "" {
		id = newest[0]
	}
	entry, err := folder.Find(id)
	switch {
	case err == nil:
		return entry, nil
	case errors.Is(err, records.ErrNotFound):
		return records.Entry{}, failed(exitUsage, fmt.Sprintf("there is no record of the call %q", id), newestHints(folder, newest)...)
	case errors.Is(err, records.ErrAmbiguous):
		return records.Entry{}, failed(exitUsage, fmt.Sprintf("the ids of several calls begin with %q; write more of one", id), newestHints(folder, newestWith(folder, id))...)
	case errors.Is(err, records.ErrID):
		return records.Entry{}, failed(exitUsage, fmt.Sprintf("%q is not a call's id, nor the first %d characters or more of one", id, records.MinPrefix), newestHints(folder, newest)...)
	}
	return records.Entry{}, failed(exitUsage, err.Error())
}

// newestWith returns the newest calls whose ids begin with a text.
func newestWith(folder records.Folder, prefix string) []string {
	ids, err := folder.Newest(records.MaxRecords)
	if err != nil {
		return nil
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, strings.ToLower(prefix)) })
	return ids[:min(len(ids), 5)]
}

// newestHints lists calls that there are, a line each.
func newestHints(folder records.Folder, ids []string) []string {
	hints := make([]string, len(ids))
	for i, id := range ids {
		hints[i] = "there is " + id
		if entry, err := folder.Find(id); err == nil {
			hints[i] += fmt.Sprintf(": %s, %s, %s", entry.Record.Function.Name, outcomeOf(entry.Record), localTime(entry.Time))
		}
	}
	return hints
}

// explain puts a record into words.
func explain(entry records.Entry) explanation {
	record := entry.Record
	e := explanation{
		Outcome: outcomeOf(record), Message: record.Result.Error, Ran: !record.Skipped,
		Hints: list(kindHints(record.Result.Kind, entry.Manifest)), Denials: []denied{},
	}
	for _, d := range record.Denials {
		e.Denials = append(e.Denials, denied{
			Request: d.Permission + " " + d.Value, Rule: d.Rule,
			Hints: list(remedy(d.Allow, "the manifest "+shortPath(entry.Manifest), policyName)),
		})
	}
	return e
}

func outcomeOf(record tool.Record) string {
	if kind := record.Result.Kind; kind != "" {
		return string(kind)
	}
	return "success"
}

// kindHints says what can be done about a call of which nothing was denied.
func kindHints(kind tool.Kind, manifest string) []string {
	raise := func(limit, flag string) []string {
		return []string{fmt.Sprintf("raise limits.%s in %s or %s, whichever is lower", limit, shortPath(manifest), flag)}
	}
	switch kind {
	case tool.Deadline:
		return raise("timeout", "--timeout")
	case tool.Memory:
		return raise("memory", "--memory")
	case tool.Fuel:
		return raise("fuel", "--fuel")
	case tool.Output:
		return []string{"raise limits.output in " + shortPath(manifest)}
	case tool.Internal:
		return []string{"run the call again with --verbose to see the cause, which records leave out"}
	}
	return nil
}

// explainedBy adds to why a call failed where there is more about it, if it was kept. A
// call that did not get to run, for a reason that the message names, has nothing to show.
func (f *failure) explainedBy(record tool.Record, kept bool) *failure {
	if kept && (record.Usage.Fuel != nil || len(record.Denials) > 0 && record.Denials[0].Permission != availability) {
		m := &f.messages[len(f.messages)-1]
		m.hints = append(m.hints, fmt.Sprintf("run %q to see what it did", "caisson explain "+record.CallID))
	}
	return f
}
