package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/tool"
)

const recordsHelp = `Find, show, export, verify and remove the records of calls. Each call leaves a record, with
its arguments, its result and what it was denied, in the state folder or in the PostgreSQL
database that --ledger names. docs/records.md describes what is kept, and how to prove that
the records are unchanged.`

const recordsListHelp = `List the calls that have ended, newest first. Only calls that match all given flags are
listed.

--words finds calls that have all of its words in their arguments or their result, in any
order and in any case. A word consists of letters and digits.`

const recordsListExample = `  caisson records list --tool fetch_page --outcome denied
  caisson records list --words "invoice 4711" --from 2026-11-01
  caisson records list --tenant acme --denied --json`

const recordsExportHelp = `Write records to standard output.

Formats:
  jsonl     one JSON object per call, newest first
  csv       one line per call, with its arguments and its result as JSON
  evidence  what another machine needs to verify that no record was changed, including
            hashes of removed records; the program examples/verify does this. The flags
            that select calls cannot be combined with this format.`

const recordsVerifyHelp = `Check that all records are as they were written: that none was changed, moved or removed.
Records that were removed by age, by number or by "caisson records erase" are no error. Also
check that each checkpoint (a signed hash of all records until then) was signed with the key
of this ledger (the database of the records). --json prints the public key ("key"). With
--ledger, processes sign only if they have --checkpoint-key. If no process has it, there are
no checkpoints.

The exit code is 1 if something is wrong.`

const recordsEraseHelp = `Erase the records of a tenant, or of one user of a tenant, now and for good. What remains
proves that there were calls and when they ended. It does not show what the calls were.`

func newRecords(o options) *cobra.Command {
	return newGroup("records", "find, export, verify and remove the records of calls", recordsHelp,
		"list, show, export, verify, prune or erase",
		newRecordsList(o), newRecordsShow(o), newRecordsExport(o), newRecordsVerify(o), newRecordsPrune(o),
		newRecordsErase(o))
}

// recordsCommand returns a command that works on the ledger. key says what it does with the key of checkpoints.
func (o *options) recordsCommand(
	command *cobra.Command, key string, work func(ctx context.Context, kept *ledger.Ledger, args []string) error,
) *cobra.Command {
	if command.Args == nil {
		command.Args = positional(0, 0, "")
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		o.command = command
		return o.withLedger(command.Context(), func(kept *ledger.Ledger) error { return work(command.Context(), kept, args) })
	}
	o.ledgerFlags(command, key)
	return command
}

// withLedger opens the ledger while work runs.
func (o *options) withLedger(ctx context.Context, work func(kept *ledger.Ledger) error) (err error) {
	kept, err := o.ledger(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close(context.WithoutCancel(ctx))) }()
	err = work(kept)
	if failure, ok := errors.AsType[*ledger.Error](err); ok {
		return failed(exitUsage, failure.Error())
	}
	return err
}

// ledgerFlags adds the flags that say where the ledger is, and with which key it is signed. key says what for.
func (o *options) ledgerFlags(command *cobra.Command, key string) {
	o.stateFlag(command, "the records are in `DIR`")
	o.ledgerFlag(command, "the records are")
	o.checkpointFlag(command, key)
}

// ledgerFlag adds the flag for the database. use says what the command does in it.
func (o *options) ledgerFlag(command *cobra.Command, use string) {
	command.Flags().StringVar(&o.ledgerURL, "ledger", "",
		use+" in the PostgreSQL database with this `URL`, such as postgres://caisson@db.example.com/caisson, and not in "+
			"the state folder; PGPASSWORD or a .pgpass file has the password")
}

// filterFlags adds the flags that select calls.
func filterFlags(command *cobra.Command, f *ledger.Filter) {
	flags := command.Flags()
	flags.StringVar(&f.Tool, "tool", "", "only calls of the tool `NAME`")
	flags.Func("tenant", "only calls for the tenant `NAME`; \"\" is the default tenant", pointedTo(&f.Tenant))
	flags.StringVar(&f.User, "user", "", "only calls for the user `NAME`")
	flags.StringVar(&f.Session, "session", "", "only calls of the session `ID`")
	flags.Func("outcome", "only calls that ended as `OUTCOME`: success, or a kind of failure such as denied",
		parsedInto(&f.Outcome, parseOutcome))
	flags.BoolVar(&f.Denied, "denied", false, "only calls that were denied something, even if they succeeded")
	flags.Func("from", "only calls that ended at `TIME` or later, such as 2026-11-29 or 2026-11-29T12:00:00Z",
		parsedInto(&f.From, parseTime))
	flags.Func("to", "only calls that ended before `TIME`", parsedInto(&f.To, parseTime))
	flags.StringVar(&f.Words, "words", "", "only calls with all words of `TEXT` in their arguments or their result")
	_ = command.RegisterFlagCompletionFunc("outcome",
		cobra.FixedCompletions(outcomes(), cobra.ShellCompDirectiveNoFileComp))
}

// outcomes are how a call can end.
func outcomes() []cobra.Completion {
	all := []cobra.Completion{"success"}
	for _, kind := range tool.Kinds() {
		all = append(all, string(kind))
	}
	return all
}

func parseOutcome(text string) (string, error) {
	for _, known := range outcomes() {
		if text == known {
			return text, nil
		}
	}
	return "", errors.New("want one of " + strings.Join(outcomes(), ", "))
}

// parseTime parses a time, or a day, which begins at midnight here.
func parseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	day, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	if err != nil {
		return day, errors.New("want a day or a time, such as 2026-11-29 or 2026-11-29T12:00:00Z")
	}
	return day, nil
}

func newRecordsList(o options) *cobra.Command {
	var f ledger.Filter
	limit := 20
	command := &cobra.Command{
		Use: "list", Short: "list the calls that have ended", Long: recordsListHelp, Example: recordsListExample,
	}
	filterFlags(command, &f)
	command.Flags().Func("limit", "list at most `N` calls (default 20)", parsedInto(&limit, parseCount))
	o.outputFlags(command, "print one JSON object per line: the record, with its tenant, user and session")
	return o.recordsCommand(command, signsInterrupted, func(ctx context.Context, kept *ledger.Ledger, _ []string) error {
		rows := [][]string{{"TIME", "CALL", "TOOL", "OUTCOME", "TENANT", "USER"}}
		err := eachCall(ctx, kept, f, limit, func(e ledger.Entry) error {
			if o.json {
				return o.printJSON(e)
			}
			rows = append(rows, []string{
				e.Time.Local().Format(time.DateTime), e.Record.CallID, terminal.Clip(e.Record.Function.Name, 32),
				view.Outcome(e.Record), terminal.Clip(e.Tenant, 16), terminal.Clip(e.User, 16),
			})
			return nil
		})
		switch {
		case err != nil || o.json:
			return err
		case len(rows) == 1:
			o.hint(`no call matches; "caisson records list" lists the newest of all`)
			return nil
		}
		return o.print(terminal.Aligned(rows))
	})
}

// eachCall calls each for the calls that a filter asks for, at most limit; 0 for all.
func eachCall(
	ctx context.Context, kept *ledger.Ledger, f ledger.Filter, limit int, each func(ledger.Entry) error,
) error {
	for found := 0; ; {
		f.Limit = ledger.MaxLimit
		if limit > 0 {
			f.Limit = min(limit-found, ledger.MaxLimit)
		}
		page, err := kept.Calls(ctx, f)
		if err != nil {
			return err
		}
		for _, entry := range page.Entries {
			if err := each(entry); err != nil {
				return err
			}
		}
		found += len(page.Entries)
		if f.Cursor = page.Cursor; f.Cursor == "" || limit > 0 && found >= limit {
			return nil
		}
	}
}

func newRecordsShow(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "show CALL-ID", Short: "print the record of a call as it is stored",
		Long: "Print the record of a call as it is stored, as one JSON object. \"caisson explain\" explains\n" +
			"it. A unique prefix of at least 8 characters of the id is enough; calls of the same minute\n" +
			"can share 8 characters. For inputs recorded with --record-inputs, only their size is\n" +
			"printed.",
		Args: positional(1, 1, "a CALL-ID"),
	}
	return o.recordsCommand(command, signsInterrupted, func(
		ctx context.Context, kept *ledger.Ledger, args []string,
	) error {
		entry, err := find(ctx, kept, args[0])
		if err != nil {
			return err
		}
		entry.Inputs = replay.Summarize(entry.Inputs)
		return o.printJSON(entry)
	})
}

func newRecordsExport(o options) *cobra.Command {
	var f ledger.Filter
	format := "jsonl"
	command := &cobra.Command{Use: "export", Short: "write records to standard output", Long: recordsExportHelp}
	filterFlags(command, &f)
	command.Flags().Func("format", "write `FORMAT`: jsonl, csv or evidence (default jsonl)",
		parsedInto(&format, func(text string) (string, error) {
			if text != "jsonl" && text != "csv" && text != "evidence" {
				return "", errors.New("want jsonl, csv or evidence")
			}
			return text, nil
		}))
	return o.recordsCommand(command, signsInterrupted, func(ctx context.Context, kept *ledger.Ledger, _ []string) error {
		out := bufio.NewWriterSize(o.stdout, 64<<10)
		var err error
		switch {
		case format == "evidence" && f != ledger.Filter{}:
			return failed(exitUsage, "evidence is of all records; leave out the flags that select calls")
		case format == "evidence":
			lines := json.NewEncoder(out)
			lines.SetEscapeHTML(false)
			err = kept.Evidence(ctx, func(line ledger.Line) error { return lines.Encode(line) })
		case format == "csv":
			err = exportCSV(ctx, kept, f, csv.NewWriter(out))
		default:
			lines := json.NewEncoder(out)
			lines.SetEscapeHTML(false)
			err = eachCall(ctx, kept, f, 0, func(e ledger.Entry) error { return lines.Encode(e) })
		}
		return errors.Join(err, out.Flush())
	})
}

func exportCSV(ctx context.Context, kept *ledger.Ledger, f ledger.Filter, out *csv.Writer) error {
	err := out.Write([]string{
		"time", "call_id", "tenant", "user", "session", "tool", "outcome", "denials", "execution_time", "arguments", "result",
	})
	if err != nil {
		return err
	}
	err = eachCall(ctx, kept, f, 0, func(e ledger.Entry) error {
		result, err := json.Marshal(e.Result())
		if err != nil {
			return err
		}
		r := e.Record
		return out.Write([]string{
			e.Time.UTC().Format(time.RFC3339Nano), r.CallID, e.Tenant, e.User, e.Session, r.Function.Name, view.Outcome(r),
			strconv.Itoa(len(r.Denials)), strconv.FormatFloat(r.ExecutionTime.Seconds(), 'f', -1, 64), r.Function.Arguments,
			string(result),
		})
	})
	out.Flush()
	return errors.Join(err, out.Error())
}

func newRecordsVerify(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "verify", Short: "check that all records are as they were written", Long: recordsVerifyHelp,
	}
	o.outputFlags(command, "print one JSON object")
	return o.recordsCommand(command, checksSignatures, func(ctx context.Context, kept *ledger.Ledger, _ []string) error {
		v, err := kept.Verify(ctx)
		if err != nil {
			return err
		}
		var text strings.Builder
		for _, fault := range v.Faults {
			fmt.Fprintln(&text, fault)
		}
		fmt.Fprintf(&text, "%s (%d removed), %s, %s\n", terminal.Count(int(v.Entries), "record"), v.Removed,
			terminal.Count(int(v.Checkpoints), "checkpoint"), terminal.Count(len(v.Faults), "fault"))
		if err := o.show(v, text.String()); err != nil || len(v.Faults) == 0 {
			return err
		}
		return failed(exitFailed, "the ledger is not as it was written",
			`"caisson records export --format evidence" writes the evidence to examine`)
	})
}

func newRecordsPrune(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "prune", Short: "remove the oldest records",
		Long: "Remove the records that are too old or too many. \"caisson serve\" does so itself, with its\n" +
			"own --keep-for and --keep-records.",
	}
	o.keepFlags(command)
	o.outputFlags(command, "print one JSON object")
	return o.recordsCommand(command, signsInterrupted, func(ctx context.Context, kept *ledger.Ledger, _ []string) error {
		pruned, err := kept.Prune(ctx)
		if err != nil {
			return err
		}
		return o.showRemoved(pruned)
	})
}

func (o *options) showRemoved(removed int64) error {
	return o.show(struct {
		Removed int64 `json:"removed"`
	}{removed}, "removed "+terminal.Count(int(removed), "record")+"\n")
}

// keepFlags adds the flags that limit what is kept.
func (o *options) keepFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.Func("keep-for", "keep records for `DURATION`, such as 720h (default: until there are too many)",
		parsedInto(&o.keepFor, parseDuration))
	flags.Func("keep-records", "keep at most `N` records, which tenants share evenly (default 100000)",
		parsedInto(&o.keepRecords, parseCount))
}

func newRecordsErase(o options) *cobra.Command {
	var user string
	var tenant *string
	yes := false
	command := &cobra.Command{
		Use: "erase --tenant NAME [--user NAME] [--yes]", Short: "erase the records of a tenant or a user",
		Long: recordsEraseHelp, Example: "  caisson records erase --tenant acme --user ann --yes",
	}
	flags := command.Flags()
	flags.Func("tenant", "the tenant `NAME`; \"\" is the default tenant", pointedTo(&tenant))
	flags.StringVar(&user, "user", "", "only the records of the tenant's user `NAME`")
	flags.BoolVar(&yes, "yes", false, "erase the records; without it, the command says how many it would erase, and fails")
	o.outputFlags(command, "print one JSON object")
	return o.recordsCommand(command, signsInterrupted, func(ctx context.Context, kept *ledger.Ledger, _ []string) error {
		if tenant == nil {
			return usageError(o.command, `erase needs --tenant NAME; --tenant "" is the default tenant`)
		}
		if !yes {
			n := 0
			err := eachCall(ctx, kept, ledger.Filter{Tenant: tenant, User: user}, 0, func(ledger.Entry) error {
				n++
				return nil
			})
			if err != nil {
				return err
			}
			return failed(exitUsage, "this would erase "+terminal.Count(n, "record")+" for good", "add --yes to erase them")
		}
		erased, err := kept.Erase(ctx, *tenant, user)
		if err != nil {
			return err
		}
		return o.showRemoved(erased)
	})
}
