package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// shownArguments is how many characters of a call's arguments are shown to people.
const shownArguments = 500

// entryText returns a kept call for people.
func (o *options) entryText(entry records.Entry, e explanation, calls []made) string {
	record := entry.Record
	var b strings.Builder
	title := record.Function.Name + ": " + e.Outcome
	if e.Message != "" {
		title = record.Function.Name + ": " + e.Message
	}
	b.WriteString(sanitiseLine(title) + "\n\n")
	field(&b, "call", record.CallID)
	field(&b, "time", localTime(entry.Time))
	if entry.Manifest != "" {
		field(&b, "manifest", shortPath(entry.Manifest))
		field(&b, "source", shortPath(entry.Source))
	}
	if record.Parent != "" {
		field(&b, "made by", record.Parent)
	}
	field(&b, "arguments", clip(record.Function.Arguments, shownArguments))
	field(&b, "outcome", outcomeLine(record, e))
	field(&b, "took", usageLine(record))
	field(&b, "repairs", repairLines(record.Repairs)...)
	field(&b, "cut", o.cutLines(record)...)
	field(&b, "hints", e.Hints...)
	writeMade(&b, calls)
	writeHostCalls(&b, record)
	writeDenials(&b, e.Denials)
	writeLog(&b, record.Log)
	return b.String()
}

func outcomeLine(record tool.Record, e explanation) string {
	line := e.Outcome
	if code, known := exitCode(record.Result.Kind); known && code != exitSuccess {
		line += fmt.Sprintf(", exit code %d", code)
	}
	switch {
	case record.Cached:
		line += ", the answer of an earlier call that asked the same, " + record.Source
	case record.Source != "":
		line += ", the answer of a call of its batch that asked the same, " + record.Source
	case !e.Ran:
		line += "; the tool was not started"
	}
	return line
}

// cutLines says of which parts the record has the beginning alone, and how to see the whole.
func (o *options) cutLines(record tool.Record) []string {
	lines := make([]string, len(record.Cuts))
	for i, c := range record.Cuts {
		lines[i] = fmt.Sprintf("%s: %d of %d bytes were given on; %s", c.Part, c.Kept, c.Bytes, o.outputCommand(record.CallID, c.Part, 0))
	}
	return lines
}

// writeMade writes the calls that the call made, in the order in which it made them.
func writeMade(b *strings.Builder, calls []made) {
	if len(calls) == 0 {
		return
	}
	b.WriteString("\ncalls that it made\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "  CALL\tTOOL\tOUTCOME\tTIME")
	for _, c := range calls {
		took := roundTime(time.Duration(c.ExecutionTime * float64(time.Second)))
		if c.Cached {
			took = "cached"
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", c.CallID, sanitiseLine(c.Name), c.Outcome, took)
	}
	_ = w.Flush() // a strings.Builder does not fail
}

func usageLine(record tool.Record) string {
	line := roundTime(record.Usage.Wall)
	if fuel := record.Usage.Fuel; fuel != nil {
		line += ", " + count(int(*fuel), "instruction")
	}
	if bytes := record.Usage.MemoryBytes; bytes > 0 {
		line += ", " + manifests.Bytes(bytes).String() + " of memory"
	}
	line += ", " + count(int(record.Usage.HostCalls), "host call")
	if record.ExecutionTime > record.Usage.Wall {
		line += "; " + roundTime(record.ExecutionTime) + " with queueing and compiling"
	}
	return line
}

func repairLines(repairs []tool.Repair) []string {
	lines := make([]string, len(repairs))
	for i, r := range repairs {
		lines[i] = fmt.Sprintf("%s: %s to %s (%s)", cmp.Or(r.Path, "all arguments"), r.From, r.To, r.Rule)
	}
	return lines
}

// writeHostCalls writes what the call asked of the host as a table, in the order in which
// it asked.
func writeHostCalls(b *strings.Builder, record tool.Record) {
	if len(record.HostCalls) == 0 {
		return
	}
	b.WriteString("\nhost calls\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "  KIND\tTARGET\tBYTES\tTIME\tALLOWED\tSTATUS")
	for _, c := range record.HostCalls {
		allowed := "yes"
		if !c.Allowed {
			allowed = "no"
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%d\t%s\t%s\t%s\n",
			sanitiseLine(c.Kind), sanitiseLine(c.Target), c.Bytes, roundTime(c.Duration), allowed, sanitiseLine(c.Status))
	}
	_ = w.Flush() // a strings.Builder does not fail
	if more := record.Usage.HostCalls - int64(len(record.HostCalls)); more > 0 {
		fmt.Fprintf(b, "  and %s\n", count(int(more), "more host call"))
	}
}

func writeDenials(b *strings.Builder, denials []denied) {
	if len(denials) > 0 {
		b.WriteString("\ndenied\n")
	}
	for _, d := range denials {
		b.WriteString("  " + sanitiseLine(d.Request+": "+d.Rule) + "\n")
		for _, hint := range d.Hints {
			b.WriteString("    " + sanitiseLine(hint) + "\n")
		}
	}
}

// writeLog writes what the tool logged. Lines are indented, so that none can pass for one
// of this command.
func writeLog(b *strings.Builder, log string) {
	if log = strings.TrimRight(log, "\n"); log == "" {
		return
	}
	b.WriteString("\nlog\n")
	for line := range strings.SplitSeq(log, "\n") {
		b.WriteString("  " + sanitiseLine(line) + "\n")
	}
}

func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 -07:00") }

// roundTime returns a duration with about three digits.
func roundTime(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// shortPath returns a path as it is reached from here, if it lies here.
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
