package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// shownArguments is how many characters of a call's arguments are shown to people.
const shownArguments = 500

// entryText returns a record as text for people.
func (o *options) entryText(entry records.Entry, e explanation, calls []made) string {
	record := entry.Record
	var b strings.Builder
	title := record.Function.Name + ": " + e.Outcome
	switch {
	case e.Cause != "":
		title = record.Function.Name + ": " + e.Cause
	case e.Message != "":
		title = record.Function.Name + ": " + whyFailed(record.Result)
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
	if e.Cause != "" {
		field(&b, "answer", e.Message)
	}
	field(&b, "took", usageLine(record))
	field(&b, "repairs", repairLines(record.Repairs)...)
	field(&b, "truncated", o.cutLines(record)...)
	field(&b, "hints", e.Hints...)
	titled(&b, "calls that it made", madeTable(calls))
	titled(&b, "host calls", hostCallTable(record))
	titled(&b, "denied", denialText(e.Denials))
	titled(&b, "log", logText(record.Log))
	return b.String()
}

func outcomeLine(record tool.Record, e explanation) string {
	line := e.Outcome
	// The exit code of a failure of the host depends on its cause.
	if code, known := exitCode(record.Result.Kind); known && code != exitSuccess && record.Result.Kind != tool.Internal {
		line += fmt.Sprintf(", exit code %d", code)
	}
	switch {
	case record.Cached:
		line += ", reused from an earlier identical call, " + record.Source
	case record.Source != "":
		line += ", reused from an identical call in its batch, " + record.Source
	case !e.Ran:
		line += "; the tool was not started"
	}
	return line
}

// cutLines says which parts were truncated in the record, and how to see them in full.
func (o *options) cutLines(record tool.Record) []string {
	lines := make([]string, len(record.Cuts))
	for i, c := range record.Cuts {
		lines[i] = fmt.Sprintf("%s: %d of %d bytes were returned; %s", c.Part, c.Kept, c.Bytes, o.outputCommand(record.CallID, c.Part, 0))
	}
	return lines
}

// titled writes a text below a title, if there is any.
func titled(b *strings.Builder, title, text string) {
	if text != "" {
		b.WriteString("\n" + title + "\n" + text)
	}
}

// madeTable lists the calls that the call made, in order.
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
	return aligned(rows)
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

func repairLines(repairs []tool.Repair) []string {
	lines := make([]string, len(repairs))
	for i, r := range repairs {
		lines[i] = fmt.Sprintf("%s: %s to %s (%s)", cmp.Or(r.Path, "all arguments"), r.From, r.To, r.Rule)
	}
	return lines
}

// hostCallTable lists the calls to the host, in order.
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
	text := aligned(rows)
	if more := record.Usage.HostCalls - int64(len(record.HostCalls)); more > 0 {
		text += "  and " + count(int(more), "more host call") + "\n"
	}
	return text
}

func denialText(denials []denied) (text string) {
	for _, d := range denials {
		note := ""
		if d.Note {
			note = " (a note: the tool went on without it)"
		}
		text += "  " + sanitiseLine(d.Request+": "+d.Rule) + note + "\n"
		for _, hint := range d.Hints {
			text += "    " + sanitiseLine(hint) + "\n"
		}
	}
	return text
}

// logText indents the tool's log, so that no line of it looks like one of this command.
func logText(log string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(log, "\n")) {
		b.WriteString("  " + sanitiseLine(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
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

// Parts of a result, besides those of its content.
const (
	partOutput = "output"
	partError  = "error"
	partData   = "data"
)

// pageOptions select the range of a result to print.
type pageOptions struct {
	output bool
	part   string          // empty means the output, or the data if there is no output
	from   int64           // the first byte
	bytes  manifests.Bytes // 0 for all
}

func (p *pageOptions) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&p.output, "output", false, "print only the output, or the part of the result named by --part, in full")
	flags.StringVar(&p.part, "part", "", "with --output: print only `PART`: output, error, data, or a content part such as 'content[0]'")
	flags.Int64Var(&p.from, "from", 0, "with --output: start at byte `N`")
	flags.Func("bytes", "with --output: print at most `SIZE`, such as 32KiB (default: all)", parsedInto(&p.bytes, parseSize))
}

// check rejects flags that need --output.
func (p *pageOptions) check(command *cobra.Command) error {
	for _, name := range []string{"part", "from", "bytes"} {
		if command.Flags().Changed(name) && !p.output {
			return usageError(command, "--"+name+" needs --output")
		}
	}
	if p.from < 0 {
		return usageError(command, fmt.Sprintf("--from %d: want 0 or more", p.from))
	}
	return nil
}

// printPage prints a range of a call's result. With --json it prints a [tool.Page].
func (o *options) printPage(entry records.Entry, p pageOptions) error {
	result, id := entry.Result(), entry.Record.CallID
	if p.part == "" {
		p.part = partOutput
		if result.Output == "" && len(result.Data) > 0 {
			p.part = partData
		}
	}
	whole, ok := partOf(result, p.part)
	if !ok {
		return failed(exitUsage, fmt.Sprintf("the call %s returned no %s", id, p.part), partHint(result))
	}
	if p.from > int64(len(whole)) {
		return failed(exitUsage, fmt.Sprintf("--from %d: the %s of the call has %s", p.from, p.part, count(len(whole), "byte")))
	}
	page := pageOf(whole, p.from, int64(p.bytes))
	if o.json {
		page.Reference = referenceOf(id, p.part)
		return o.printJSON(page)
	}
	text := page.Text
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := o.print(text); err != nil {
		return err
	}
	if page.Next >= 0 {
		o.hint(fmt.Sprintf("%d of %d bytes follow; read on with %s", page.Total-page.Next, page.Total, o.outputCommand(id, p.part, page.Next)))
	}
	return nil
}

// referenceOf returns the reference of a part of a result, as in [tool.Cut]. The reference of the
// output is the call's id alone.
func referenceOf(id, part string) string {
	if part == partOutput {
		return id
	}
	return id + "." + part
}

// partHint names the parts that a result has.
func partHint(result tool.Result) string {
	var parts []string
	for _, part := range []string{partOutput, partError, partData} {
		if _, ok := partOf(result, part); ok {
			parts = append(parts, part)
		}
	}
	for i := range result.Content {
		parts = append(parts, fmt.Sprintf("content[%d]", i))
	}
	if len(parts) == 0 {
		return "the call returned nothing"
	}
	return "choose one of its parts with --part: " + strings.Join(parts, ", ")
}

// partOf returns a part of a result as text, or false if it does not have the part. "content[1:]" is
// all content parts from that one on.
func partOf(result tool.Result, part string) (string, bool) {
	switch part {
	case partOutput:
		return result.Output, result.Output != ""
	case partError:
		return result.Error, result.Error != ""
	case partData:
		return string(result.Data), len(result.Data) > 0
	}
	for i, c := range result.Content {
		switch {
		case part == fmt.Sprintf("content[%d:]", i):
			return wireText(result.Content[i:]), true
		case part != fmt.Sprintf("content[%d]", i):
			continue
		case c.Type == "text":
			return c.Text, true
		}
		return wireText(c), true
	}
	return "", false
}

// wireText returns content parts as written in a result, with binary data in base64.
func wireText(content any) string {
	text, _ := marshal(content) // text and bytes can always be encoded
	return string(text)
}

// pageOf returns at most most bytes of a text, or all if most is 0. The page starts at the first
// character at or after byte from, ends between two characters, and has at least one character.
func pageOf(whole string, from, most int64) tool.Page {
	begin := int(from)
	for begin < len(whole) && !utf8.RuneStart(whole[begin]) {
		begin++
	}
	end := len(whole)
	if rest := int64(end - begin); most > 0 && most < rest {
		end = begin + int(most)
		for end > begin && !utf8.RuneStart(whole[end]) {
			end--
		}
		if end == begin {
			_, size := utf8.DecodeRuneInString(whole[begin:])
			end += size
		}
	}
	page := tool.Page{Text: whole[begin:end], From: int64(begin), Next: int64(end), Total: int64(len(whole))}
	if end == len(whole) {
		page.Next = -1
	}
	return page
}
