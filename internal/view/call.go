package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Call is the output of "caisson explain".
type Call struct {
	Time        time.Time       `json:"time"`
	Source      string          `json:"source"`
	Manifest    string          `json:"manifest"`
	Record      json.RawMessage `json:"record"`
	Explanation explanation     `json:"explanation"`
	Calls       []made          `json:"calls"` // calls that this one made

	entry ledger.Entry
	exit  int
}

type made struct {
	CallID        string  `json:"call_id"`
	Name          string  `json:"name"`
	Outcome       string  `json:"outcome"`        // "success", or the kind of the failure
	ExecutionTime float64 `json:"execution_time"` // in seconds, like the other times: all but the time in the queue
	WallTime      float64 `json:"wall_time"`      // in the tool
	QueueTime     float64 `json:"queue_time"`
	CompileTime   float64 `json:"compile_time"`
	Cached        bool    `json:"cached"`
}

type explanation struct {
	Outcome string   `json:"outcome"` // "success", or the kind of the failure
	Message string   `json:"message"` // what the caller was told; empty for a success
	Cause   string   `json:"cause"`   // why Caisson failed, which the caller was not told; empty if it did not
	Ran     bool     `json:"ran"`     // false if the call was rejected before the tool started
	Hints   []string `json:"hints"`   // what to do, for the call as a whole
	Denials []denied `json:"denials"`
}

type denied struct {
	Request string   `json:"request"` // permission and value
	Rule    string   `json:"rule"`
	Hints   []string `json:"hints"` // what would allow it; empty if nothing would
	Note    bool     `json:"note,omitempty"`
}

// NewCall explains a call from its record and the records of the calls that it made. exit is the exit code of "caisson
// call" for such a result, or 0 if it depends on more than that.
func NewCall(entry ledger.Entry, calls []ledger.Entry, exit int) Call {
	record := entry.Record
	c := Call{
		Time: entry.Time, Source: entry.Source, Manifest: entry.Manifest, Record: entry.Wire,
		Calls: make([]made, len(calls)), entry: entry, exit: exit,
		Explanation: explanation{
			Outcome: Outcome(record), Message: record.Result.Error, Cause: entry.Cause, Ran: !record.Skipped,
			Hints: jsontext.List(kindHints(record.Result.Kind, entry)), Denials: []denied{},
		},
	}
	for i, entry := range calls {
		r := entry.Record
		c.Calls[i] = made{r.CallID, r.Function.Name, Outcome(r), r.ExecutionTime.Seconds(), r.Usage.Wall.Seconds(),
			r.Usage.Queue.Seconds(), r.Usage.Compile.Seconds(), r.Cached}
	}
	for _, d := range record.Denials {
		hints := RemedyOf(d.Allow, entry.Manifest).Hints("the manifest "+shortPath(entry.Manifest), check.PolicyName)
		if d.Note {
			hints = nil
		}
		if d.Permission == ApprovalPermission {
			hints = append(hints,
				"approve the paused call with --approve, or all calls of a destructive tool with --approve-tool")
		}
		c.Explanation.Denials = append(c.Explanation.Denials,
			denied{Request: d.Permission + " " + d.Value, Rule: d.Rule, Hints: jsontext.List(hints), Note: d.Note})
	}
	return c
}

// kindHints says what can be done about a failure that was not a denial.
func kindHints(kind tool.Kind, entry ledger.Entry) []string {
	l, isLimit := Limits[kind]
	manifest := entry.Manifest
	flag, _, _ := strings.Cut(l.Flag, " ")
	switch {
	case kind == tool.Internal && entry.Cause == "": // kept by an earlier version
		return []string{"run the call again with --verbose to see the cause"}
	case kind == tool.Internal && manifest != "":
		return []string{terminal.ToRun("caisson validate "+terminal.Quote(shortPath(manifest))) +
			" to see whether the tool is the reason"}
	case !isLimit:
		return nil
	case flag == "":
		return []string{l.Raise(manifest, shortPath(manifest))}
	}
	return []string{fmt.Sprintf("%s or %s, whichever is lower", l.Raise(manifest, shortPath(manifest)), flag)}
}

// shownArguments is the maximum number of characters of a call's arguments that are shown to people.
const shownArguments = 500

// Text describes the call for people. The commands that it names have the folder of records, unless dir is nil.
func (c Call) Text(dir *string) string {
	entry, record, e := c.entry, c.entry.Record, c.Explanation
	var b strings.Builder
	title := record.Function.Name + ": " + e.Outcome
	switch {
	case e.Cause != "":
		title = record.Function.Name + ": " + e.Cause
	case e.Message != "":
		title = record.Function.Name + ": " + Failure(record.Result, "")
	}
	b.WriteString(terminal.EscapeLine(title) + "\n\n")
	terminal.Field(&b, "call", record.CallID)
	terminal.Field(&b, "time", localTime(entry.Time))
	if entry.Manifest != "" {
		terminal.Field(&b, "manifest", shortPath(entry.Manifest))
		terminal.Field(&b, "source", shortPath(entry.Source))
	}
	if record.Parent != "" {
		terminal.Field(&b, "made by", record.Parent)
	}
	terminal.Field(&b, "arguments", terminal.Clip(record.Function.Arguments, shownArguments))
	terminal.Field(&b, "outcome", c.outcomeLine())
	if e.Cause != "" {
		terminal.Field(&b, "answer", e.Message)
	}
	terminal.Field(&b, "took", usageLine(record))
	terminal.Field(&b, "repairs", texts(record.Repairs, func(r tool.Repair) string {
		return fmt.Sprintf("%s: %s to %s (%s)", cmp.Or(r.Path, "all arguments"), r.From, r.To, r.Rule)
	})...)
	terminal.Field(&b, "truncated", texts(record.Cuts, func(c tool.Cut) string {
		return fmt.Sprintf("%s: %d of %d bytes were returned; %s", c.Part, c.Kept, c.Bytes,
			OutputCommand(record.CallID, c.Part, 0, dir))
	})...)
	terminal.Field(&b, "hints", e.Hints...)
	titled(&b, "calls that it made", madeTable(c.Calls))
	titled(&b, "host calls", hostCallTable(record))
	titled(&b, "denied", denialText(e.Denials))
	titled(&b, "log", logText(record.Log))
	return b.String()
}

func (c Call) outcomeLine() string {
	record, line := c.entry.Record, c.Explanation.Outcome
	if c.exit != 0 {
		line += fmt.Sprintf(", exit code %d", c.exit)
	}
	switch {
	case record.Cached:
		line += ", reused from an earlier identical call, " + record.Source
	case record.Source != "":
		line += ", reused from an identical call in its batch, " + record.Source
	case record.Skipped:
		line += "; the tool was not started"
	}
	return line
}

// titled writes a text below a title, if there is any.
func titled(b *strings.Builder, title, text string) {
	if text != "" {
		b.WriteString("\n" + title + "\n" + text)
	}
}

func madeTable(calls []made) string {
	if len(calls) == 0 {
		return ""
	}
	rows := [][]string{{"  CALL", "TOOL", "OUTCOME", "TIME", "WAITED"}} // in the queue, for the module and for the host
	for _, c := range calls {
		took, waited := seconds(c.WallTime), seconds(c.QueueTime+max(c.ExecutionTime-c.WallTime, 0))
		if c.Cached {
			took, waited = "cached", ""
		}
		rows = append(rows, []string{"  " + c.CallID, c.Name, c.Outcome, took, waited})
	}
	return terminal.Aligned(rows)
}

func usageLine(record tool.Record) string {
	line := roundTime(record.Usage.Wall)
	if fuel := record.Usage.Fuel; fuel != nil {
		line += ", " + terminal.Count(int(*fuel), "instruction")
	}
	if bytes := record.Usage.MemoryBytes; bytes > 0 {
		line += ", " + manifests.Bytes(bytes).String() + " of memory"
	}
	line += ", " + terminal.Count(int(record.Usage.HostCalls), "host call")
	separator := "; "
	for _, part := range []struct {
		time time.Duration
		what string
	}{
		{record.Usage.Queue, " in the queue"}, {record.Usage.Compile, " compiling"},
		{record.ExecutionTime - record.Usage.Compile - record.Usage.Wall, " for the host's own work"},
	} {
		if part.time > 0 {
			line += separator + roundTime(part.time) + part.what
			separator = ", "
		}
	}
	return line
}

func hostCallTable(record tool.Record) string {
	if len(record.HostCalls) == 0 {
		return ""
	}
	rows := [][]string{{"  KIND", "TARGET", "BYTES", "TIME", "ALLOWED", "STATUS"}}
	for _, c := range record.HostCalls {
		allowed := "yes"
		if !c.Allowed {
			allowed = "no"
		}
		rows = append(rows, []string{"  " + c.Kind, c.Target, fmt.Sprint(c.Bytes), roundTime(c.Duration), allowed, c.Status})
	}
	text := terminal.Aligned(rows)
	if more := record.Usage.HostCalls - int64(len(record.HostCalls)); more > 0 {
		text += "  and " + terminal.Count(int(more), "more host call") + "\n"
	}
	return text
}

func denialText(denials []denied) (text string) {
	for _, d := range denials {
		note := ""
		if d.Note {
			note = " (a note: the tool went on without it)"
		}
		text += "  " + terminal.EscapeLine(d.Request+": "+d.Rule) + note + "\n"
		for _, hint := range d.Hints {
			text += "    " + terminal.EscapeLine(hint) + "\n"
		}
	}
	return text
}

// logText indents the tool's log, so that no line of it looks like one of this command.
func logText(log string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(log, "\n")) {
		b.WriteString("  " + terminal.EscapeLine(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// OutputPart is the part of a result that is its text.
const OutputPart = "output"

// OutputCommand returns the command that prints a part of a call's result from a byte on. It names the folder of
// records, unless dir is nil.
func OutputCommand(id, part string, from int64, dir *string) string {
	flags := " --output"
	if part != OutputPart {
		flags += " --part " + terminal.Quote(part)
	}
	if from > 0 {
		flags += fmt.Sprintf(" --from %d", from)
	}
	return ExplainCommand(id+flags, dir)
}

// ExplainCommand is like [OutputCommand] for all that is kept of a call.
func ExplainCommand(id string, dir *string) string {
	command := "caisson explain " + id
	if dir != nil {
		command += " --state-dir " + terminal.Quote(*dir)
	}
	return command
}

// CallLine describes a call in a line: its tool, its outcome and its time.
func CallLine(entry ledger.Entry) string {
	return fmt.Sprintf("%s, %s, %s", entry.Record.Function.Name, Outcome(entry.Record), localTime(entry.Time))
}

// Outcome is "success", or the kind of a failure.
func Outcome(record tool.Record) string {
	if kind := record.Result.Kind; kind != "" {
		return string(kind)
	}
	return "success"
}

func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 -07:00") }

func seconds(n float64) string { return roundTime(time.Duration(n * float64(time.Second))) }

// roundTime rounds a duration to about three digits.
func roundTime(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// shortPath returns a path relative to the working directory if it is below it.
func shortPath(path string) string {
	here, err := filepath.Abs(".")
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}
