package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const explainHelp = `Show what an earlier call did: its arguments, its result, its resource usage and what it
requested from the host. Each denied request has a receipt with the rule that denied it
and the rule that would allow it.

CALL-ID is the call_id of a record; "caisson call" prints it when a call fails. A unique
prefix of at least 8 characters is enough; calls of the same minute can share 8 characters.
Calls made by tools have records too, under their own ids. Caisson keeps at most 100,000
records and 1 GiB. The flag --keep-records of "caisson serve" and "caisson records prune"
sets another number. Tenants share this evenly: if there is too much, the oldest records of
the tenant with the most are removed. Only the current user can read the records in the
state folder.

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
			return o.explain(command.Context(), append(args, "")[0], p)
		},
	}
	command.Flags().BoolVar(&last, "last", false, "show the newest call, ignoring calls made by tools")
	p.flags(command)
	o.ledgerFlags(command, signsInterrupted)
	o.outputFlags(command, "print one JSON object: the stored record and the explanation")
	return command
}

// explain prints the call with an id, or the newest call if id is empty.
func (o *options) explain(ctx context.Context, id string, p pageOptions) (err error) {
	kept, err := o.ledger(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close(ctx)) }()
	entry, err := find(ctx, kept, id)
	if err != nil {
		return err
	}
	if p.output {
		return o.printPage(entry, p)
	}
	made, err := kept.Calls(ctx, ledger.Filter{Tenant: &entry.Tenant, Parent: entry.Record.CallID, Limit: ledger.MaxLimit})
	if err != nil {
		return err
	}
	call := explained(entry, made.Entries)
	return o.show(call, call.Text(o.stateDir))
}

// explained explains a call. The exit code of a failure of the host depends on its cause.
func explained(entry ledger.Entry, calls []ledger.Entry) view.Call {
	code, known := exitCode(entry.Record.Result.Kind)
	if !known || entry.Record.Result.Kind == tool.Internal {
		code = exitSuccess
	}
	return view.NewCall(entry, calls, code)
}

// ledger opens the ledger in the state folder.
func (o *options) ledger(ctx context.Context) (*ledger.Ledger, error) {
	options := ledger.Options{
		Location: o.ledgerURL, KeepFor: o.keepFor, KeepCalls: int64(o.keepRecords), Key: o.checkpoints.key,
	}
	if o.ledgerURL != "" {
		kept, err := ledger.Open(ctx, options)
		if err != nil {
			return nil, failed(exitUsage, err.Error(), "give the URL of a PostgreSQL database with --ledger URL")
		}
		return kept, nil
	}
	dir, err := o.stateFolder()
	if err == nil && dir == "" {
		err = errors.New(`--state-dir "" names no folder`)
	}
	if err != nil {
		return nil, failed(exitUsage, err.Error(), "name the folder with --state-dir DIR")
	}
	if !ledger.Exists(dir) {
		return nil, failed(exitUsage, "no call has been kept in "+dir, keptBy)
	}
	kept, err := ledger.OpenIn(ctx, dir, options)
	if err != nil {
		return nil, failed(exitUsage, err.Error(), "name another folder with --state-dir DIR")
	}
	return kept, nil
}

const keptBy = `"caisson call" and "caisson batch" keep what they ran; name another folder with --state-dir DIR`

// find returns the call with an id, or the newest call not made by a tool if id is empty.
func find(ctx context.Context, kept *ledger.Ledger, id string) (entry ledger.Entry, err error) {
	newest, err := kept.Calls(ctx, ledger.Filter{Limit: 2})
	if err == nil && len(newest.Entries) == 0 {
		return entry, failed(exitUsage, "the records of all calls were removed", keptBy)
	}
	if err == nil && id == "" {
		return newestOf(ctx, kept, newest.Entries[0])
	}
	if err == nil {
		entry, err = kept.Find(ctx, id)
	}
	var text string
	switch {
	case err == nil:
		return entry, nil
	case errors.Is(err, ledger.ErrNotFound):
		text = fmt.Sprintf("there is no record of the call %q", id)
	case errors.Is(err, ledger.ErrAmbiguous):
		text = fmt.Sprintf("the ids of several calls begin with %q; give more characters", id)
		newest, err = kept.Calls(ctx, ledger.Filter{Prefix: id, Limit: 2})
	case errors.Is(err, ledger.ErrID):
		text = fmt.Sprintf("%q is not a call's id, nor the first %d characters or more of one", id, folder.MinPrefix)
	}
	if text == "" || err != nil && newest.Entries == nil {
		return entry, failed(exitUsage, err.Error())
	}
	return entry, failed(exitUsage, text, newestHints(newest.Entries)...)
}

// newestOf returns the call at the top of a call's chain of callers. It may be the call itself.
func newestOf(ctx context.Context, kept *ledger.Ledger, entry ledger.Entry) (ledger.Entry, error) {
	for entry.Record.Parent != "" {
		caller, err := kept.Find(ctx, entry.Record.Parent)
		if errors.Is(err, ledger.ErrNotFound) { // the calling tool was stopped with its process
			return entry, nil
		}
		if err != nil {
			return entry, err
		}
		entry = caller
	}
	return entry, nil
}

// newestHints lists calls, one per line.
func newestHints(entries []ledger.Entry) []string {
	hints := make([]string, len(entries))
	for i, entry := range entries {
		hints[i] = "there is " + entry.Record.CallID + ": " + view.CallLine(entry)
	}
	return hints
}

// explainHints says to run "caisson explain" if the call's record was kept and shows more than its message.
func (o *options) explainHints(record tool.Record, kept bool) []string {
	early := []string{availability, view.ApprovalPermission} // denied before the tool is started
	if kept &&
		(record.Usage.Fuel != nil || len(record.Denials) > 0 && !slices.Contains(early, record.Denials[0].Permission)) {
		return []string{terminal.ToRun(view.ExplainCommand(record.CallID, o.stateDir)) + " to see what it did"}
	}
	return nil
}

// Parts of a result, besides those of its content.
const (
	partOutput = view.OutputPart
	partError  = "error"
	partData   = "data"
)

type pageOptions struct {
	output bool
	part   string          // empty means the output, or the data if there is no output
	from   int64           // the first byte
	bytes  manifests.Bytes // 0 for all
}

func (p *pageOptions) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&p.output, "output", false, "print only the output, or the part of the result named by --part, in full")
	flags.StringVar(&p.part, "part", "",
		"with --output: print only `PART`: output, error, data, or a content part such as 'content[0]'")
	flags.Int64Var(&p.from, "from", 0, "with --output: start at byte `N`")
	flags.Func("bytes", "with --output: print at most `SIZE`, such as 32KiB (default: all)",
		parsedInto(&p.bytes, parseSize))
}

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
func (o *options) printPage(entry ledger.Entry, p pageOptions) error {
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
		return failed(exitUsage,
			fmt.Sprintf("--from %d: the %s of the call has %s", p.from, p.part, terminal.Count(len(whole), "byte")))
	}
	page := pageOf(whole, p.from, int64(p.bytes))
	if o.json {
		if page.Reference = id; p.part != partOutput {
			page.Reference += "." + p.part
		}
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
		o.hint(fmt.Sprintf("%d of %d bytes follow; read on with %s", page.Total-page.Next, page.Total,
			view.OutputCommand(id, p.part, page.Next, o.stateDir)))
	}
	return nil
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

// partOf returns a part of a result as text, if it has it. "content[1:]" is all content from that part on.
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
	text, _ := jsontext.Encode(content) // text and bytes can always be encoded
	return string(text)
}

// pageOf returns at most limit bytes of a text, or all if limit is 0. The page starts at the first
// character at or after byte from, ends between two characters, and has at least one character.
func pageOf(whole string, from, limit int64) tool.Page {
	begin := int(from)
	for begin < len(whole) && !utf8.RuneStart(whole[begin]) {
		begin++
	}
	end := len(whole)
	if rest := int64(end - begin); limit > 0 && limit < rest {
		end = begin + int(limit)
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
