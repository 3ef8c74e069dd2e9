package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/tool"
)

const explainHelp = `Show what an earlier call did: its arguments, its result, its resource usage and what it
requested from the host. Each denied request has a receipt with the rule that denied it
and the rule that would allow it.

CALL-ID is the call_id of a record; "caisson call" prints it when a call fails. A unique
prefix of at least 8 characters is enough. Caisson keeps the newest 500 records, up to 64
MiB, readable only by the current user. Calls made by tools are kept too, under their own
ids.

A result can have an output (text), data (JSON), an error (text) and content parts (text,
images and other files). The explanation may show them truncated. --output prints one of
them in full: the one named by --part, or by default the output, or the data if there is no
output. --from and --bytes select a range of bytes, which is adjusted so that no character
is split.

Characters that could change the terminal are printed as escapes, such as \x1b; with
--json, the text is exact.`

const explainExample = `  caisson explain 0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47
  caisson explain --last --json
  caisson explain 0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47 --output | less
  caisson explain 0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47 --output --part data
  caisson explain --last --output --from 65536 --bytes 32768`

func newExplain(o options) *cobra.Command {
	var last bool
	var p pageOptions
	command := &cobra.Command{
		Use:     "explain CALL-ID | --last",
		Short:   "show what a call did, what was denied, and how to allow it",
		Long:    explainHelp,
		Example: explainExample,
		Args:    positional(0, 1, "a CALL-ID"),
		RunE: func(command *cobra.Command, args []string) error {
			if last == (len(args) == 1) {
				return usageError(command, "explain needs a CALL-ID or --last, and not both")
			}
			if err := p.check(command); err != nil {
				return err
			}
			return o.explain(append(args, "")[0], p)
		},
	}
	command.Flags().BoolVar(&last, "last", false, "show the newest call, ignoring calls made by tools")
	p.flags(command)
	o.stateFlag(command, "read the records in `DIR`")
	o.outputFlags(command, "print one JSON object: the stored record and the explanation")
	return command
}

// explained is what explain prints as JSON.
type explained struct {
	Time        time.Time       `json:"time"`
	Source      string          `json:"source"`
	Manifest    string          `json:"manifest"`
	Record      json.RawMessage `json:"record"`
	Explanation explanation     `json:"explanation"`
	Calls       []made          `json:"calls"` // calls that this one made
}

// made is a call made by another one.
type made struct {
	CallID        string  `json:"call_id"`
	Name          string  `json:"name"`
	Outcome       string  `json:"outcome"`        // "success", or the kind of the failure
	ExecutionTime float64 `json:"execution_time"` // in seconds, like the others: all but the time in the queue
	WallTime      float64 `json:"wall_time"`      // in the tool
	QueueTime     float64 `json:"queue_time"`
	CompileTime   float64 `json:"compile_time"`
	Cached        bool    `json:"cached"`
}

// explanation explains a record.
type explanation struct {
	Outcome string   `json:"outcome"` // "success", or the kind of the failure
	Message string   `json:"message"` // what the caller was told; empty for a success
	Cause   string   `json:"cause"`   // why Caisson failed, which the caller was not told; empty if it did not
	Ran     bool     `json:"ran"`     // false if the call was rejected before the tool started
	Hints   []string `json:"hints"`   // what to do, for the call as a whole
	Denials []denied `json:"denials"`
}

// denied is one denied request.
type denied struct {
	Request string   `json:"request"` // permission and value
	Rule    string   `json:"rule"`
	Hints   []string `json:"hints"` // what would allow it; empty if nothing would
	Note    bool     `json:"note,omitempty"`
}

// explain prints the call with an id, or the newest call if id is empty.
func (o *options) explain(id string, p pageOptions) error {
	store, err := o.records()
	if err == nil && store == "" {
		err = errors.New(`--state-dir "" names no folder`)
	}
	if err != nil {
		return failed(exitUsage, err.Error(), "name the folder with --state-dir DIR")
	}
	entry, err := find(store, id)
	if err != nil {
		return err
	}
	if p.output {
		return o.printPage(entry, p)
	}
	calls, err := madeBy(store, entry)
	if err != nil {
		return err
	}
	e := explain(entry)
	return o.show(explained{entry.Time, entry.Source, entry.Manifest, entry.Wire, e, calls}, o.entryText(entry, e, calls))
}

// madeBy returns the calls made by a call whose records are still kept.
func madeBy(store records.Folder, caller records.Entry) ([]made, error) {
	entries, err := store.MadeBy(caller)
	if err != nil {
		return nil, err
	}
	calls := make([]made, len(entries))
	for i, entry := range entries {
		r := entry.Record
		calls[i] = made{r.CallID, r.Function.Name, outcomeOf(r), r.ExecutionTime.Seconds(), r.Usage.Wall.Seconds(), r.Usage.Queue.Seconds(), r.Usage.Compile.Seconds(), r.Cached}
	}
	return calls, nil
}

// find returns the call with an id, or the newest call not made by a tool if id is empty.
func find(store records.Folder, id string) (records.Entry, error) {
	newest, err := store.Newest("", 2)
	if err != nil {
		return records.Entry{}, failed(exitUsage, err.Error(), "name another folder with --state-dir DIR")
	}
	if len(newest) == 0 {
		return records.Entry{}, failed(exitUsage, "no call has been kept in "+string(store),
			`"caisson call" and "caisson batch" keep what they ran; name another folder with --state-dir DIR`)
	}
	if id == "" {
		id = newestOf(store, newest[0])
	}
	entry, err := store.Find(id)
	var text string
	switch {
	case err == nil:
		return entry, nil
	case errors.Is(err, records.ErrNotFound):
		text = fmt.Sprintf("there is no record of the call %q", id)
	case errors.Is(err, records.ErrAmbiguous):
		text = fmt.Sprintf("the ids of several calls begin with %q; give more characters", id)
		newest, _ = store.Newest(id, 2)
	case errors.Is(err, records.ErrID):
		text = fmt.Sprintf("%q is not a call's id, nor the first %d characters or more of one", id, folder.MinPrefix)
	default:
		return entry, failed(exitUsage, err.Error())
	}
	return entry, failed(exitUsage, text, newestHints(store, newest)...)
}

// newestOf returns the call at the top of the newest call's chain of callers. It may be the call
// itself.
func newestOf(store records.Folder, id string) string {
	for {
		entry, err := store.Find(id)
		if err != nil || entry.Record.Parent == "" {
			return id // errors are reported when it is shown
		}
		if _, err := store.Find(entry.Record.Parent); err != nil {
			return id // the calling tool was stopped with its process
		}
		id = entry.Record.Parent
	}
}

// newestHints lists calls, one per line.
func newestHints(store records.Folder, ids []string) []string {
	hints := make([]string, len(ids))
	for i, id := range ids {
		hints[i] = "there is " + id
		if entry, err := store.Find(id); err == nil {
			hints[i] += fmt.Sprintf(": %s, %s, %s", entry.Record.Function.Name, outcomeOf(entry.Record), localTime(entry.Time))
		}
	}
	return hints
}

// explain explains a record in words.
func explain(entry records.Entry) explanation {
	record := entry.Record
	e := explanation{
		Outcome: outcomeOf(record), Message: record.Result.Error, Cause: entry.Cause, Ran: !record.Skipped,
		Hints: list(kindHints(record.Result.Kind, entry)), Denials: []denied{},
	}
	for _, d := range record.Denials {
		hints := remedyOf(d.Allow, entry.Manifest).hints("the manifest "+shortPath(entry.Manifest), policyName)
		if d.Note {
			hints = nil
		}
		if d.Permission == approvalPermission {
			hints = append(hints, "approve the paused call with --approve, or all calls of a destructive tool with --approve-tool")
		}
		e.Denials = append(e.Denials, denied{Request: d.Permission + " " + d.Value, Rule: d.Rule, Hints: list(hints), Note: d.Note})
	}
	return e
}

func outcomeOf(record tool.Record) string {
	if kind := record.Result.Kind; kind != "" {
		return string(kind)
	}
	return "success"
}

// kindHints says what can be done about a failure that was not a denial.
func kindHints(kind tool.Kind, entry records.Entry) []string {
	l, isLimit := limits[kind]
	manifest := entry.Manifest
	flag, _, _ := strings.Cut(l.flag, " ")
	switch {
	case kind == tool.Internal && entry.Cause == "": // kept by an earlier version
		return []string{"run the call again with --verbose to see the cause"}
	case kind == tool.Internal && manifest != "":
		return []string{toRun("caisson validate "+quoted(shortPath(manifest))) + " to see whether the tool is the reason"}
	case !isLimit:
		return nil
	case flag == "":
		return []string{l.raise(manifest, shortPath(manifest))}
	}
	return []string{fmt.Sprintf("%s or %s, whichever is lower", l.raise(manifest, shortPath(manifest)), flag)}
}

// explainHints says to run "caisson explain" if the call's record was kept and shows more. A call
// that was rejected before it ran, for a reason in the message, has nothing to show.
func (o *options) explainHints(record tool.Record, kept bool) []string {
	early := []string{availability, approvalPermission} // denied before the tool is started
	if kept && (record.Usage.Fuel != nil || len(record.Denials) > 0 && !slices.Contains(early, record.Denials[0].Permission)) {
		return []string{toRun(o.explainCommand(record.CallID)) + " to see what it did"}
	}
	return nil
}
