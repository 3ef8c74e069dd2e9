package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/tool"
)

const callHelp = `Run one tool and print its output. Arguments are KEY=VALUE words, or a JSON object: on the
command line, in a file (@FILE), or on standard input (-). The default is {}.

If the tool's schema allows a string for the parameter KEY, VALUE is taken literally.
Otherwise it is read as JSON, such as 3, true or [1, 2]. A VALUE of the wrong type for KEY
is a usage error (exit code 2). Then --json prints no record.

The tool's log goes to standard error, with the tool's name before each line. Characters
that could change the terminal are printed as escapes, such as \x1b. With --json, one line
of JSON with the whole record is printed instead of the output and log, whether or not the
call failed.

A tool can call other tools if its manifest requests that and the operator allows it, with
--allow-call or in the policy. "caisson explain" shows those calls and their results.

Naming a destructive tool here is enough approval to run it. If --ask or the policy
requires approval for a tool's calls, add --approve. Tools that the client runs
(execution: client) cannot be called here.

` + keptHelp

const callExample = `  caisson call calculator '{"expression": "2*(3+4.5)"}'
  caisson call calculator expression='2*(3+4.5)'
  caisson call file_read '{"path": "notes.txt"}' --mount /project=./workspace --context project_id=demo
  caisson call fetch_page '{"url": "https://example.com"}' --allow-net example.com
  caisson call web_search '{"query": "tide times"}' --config caisson.yaml
  caisson call site_digest '{"url": "https://example.com"}' --allow-call fetch_page --allow-net example.com
  caisson call calculator @arguments.json --json`

func newCall(given options) *cobra.Command {
	o := callOptions{options: given}
	command := &cobra.Command{
		Use:     callName + " NAME [KEY=VALUE… | JSON | @FILE | -]",
		Short:   "run one tool",
		Long:    callHelp,
		Example: callExample,
		Args:    positional(1, -1, "a tool's NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			return o.call(command.Context(), args)
		},
	}
	o.maxOutput.unlimited = true
	o.runFlags(command, "each call that the tool makes to other tools", "unlimited",
		"store records for \"caisson explain\" in `DIR`; with \"\", nothing is stored unless --ledger is given")
	o.outputFlags(command, "print the record of the call as one line of JSON")
	command.Flags().Lookup(
		"approve-tool").Usage = "if the tool calls the destructive tool `NAME`, approve those calls; repeatable"
	command.Flags().BoolVar(&o.approve, "approve", false, "approve this call, if --ask or the policy requires approval")
	command.ValidArgsFunction = o.completeCall
	o.completes(command)
	return command
}

// sameFlags makes a command that runs no calls accept all flags of call, so that a person can repeat the flags of a
// call with it. It leaves out the flags in but, which would contradict the command. Added flags have no effect and are
// not shown.
func (o *options) sameFlags(command *cobra.Command, but ...string) {
	newCall(*o).Flags().VisitAll(func(flag *pflag.Flag) {
		if command.Flags().Lookup(flag.Name) == nil && !slices.Contains(but, flag.Name) {
			flag.Hidden = true
			command.Flags().AddFlag(flag)
		}
	})
}

type callOptions struct {
	options
	approve bool
}

func (o *callOptions) call(ctx context.Context, args []string) (err error) {
	if isModule(args[0]) { // no tool can have such a name
		return failed(exitUsage, terminal.Quote(args[0])+" is a WebAssembly module, not the name of a tool",
			"write the name of a tool, and its manifest with --tools FILE; "+
				terminal.ToRun("caisson inspect --manifest "+terminal.Quote(args[0]))+" to see one to start from")
	}
	if isPath(args[0]) && !check.IsMissing(args[0]) {
		return failed(exitUsage, terminal.Quote(args[0])+" is a file or folder, not the name of a tool", namedIn(args[0]))
	}
	pairs, wrong := arePairs(args[1:], o.tolerantJSON)
	arguments := ""
	if !pairs && wrong < 0 {
		if arguments, err = o.readArguments(ctx, args[1:]); err != nil {
			return err
		}
	}
	h, err := o.open(ctx, openMode{runs: true, called: args[:1]})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	switch entry, known := h.registry.Get(args[0]); {
	case !known: // the record says so
	case wrong >= 0:
		return wrongWord(entry.Manifest, args[1:], wrong).withHints(h.parametersHint(args[0]))
	case pairs:
		var failure *failure
		if arguments, failure = argumentsOf(ctx, entry.Manifest, args[1:]); failure != nil {
			return failure.withHints(h.parametersHint(args[0]))
		}
	}
	report, err := h.order(ctx, o.approve,
		tool.Call{ID: "call_1", Type: tool.FunctionCall, Function: tool.Function{Name: args[0], Arguments: arguments}})
	if err != nil {
		return err
	}
	record := report.Records[0]
	if err := o.printRecord(record); err != nil {
		o.printLost(report.Records)
		return err
	}
	if record.Result.Kind != "" {
		failure := h.failureOf(record).withHints(wordHints(args[1:], record)...)
		if len(record.Denials) > 0 && record.Denials[0].Permission == view.ApprovalPermission {
			failure.withHints("approve it with --approve")
		}
		return failure.withHints(
			slices.Concat(h.nestedHints(), h.unsentSecrets(args[:1]), o.explainHints(record, h.keeps && !record.Unrecorded))...)
	}
	h.noteUnsentSecrets(args[:1])
	h.noteDeprecated(record.Function.Name)
	if failure := h.runaways.failure(); failure != nil { // in a call that it made
		return failure
	}
	return nil
}

func (e environment) readArguments(ctx context.Context, args []string) (string, error) {
	if len(args) == 0 {
		return "{}", nil
	}
	name, isFile := strings.CutPrefix(args[0], "@")
	switch {
	case isFile && (name == "" || name == "-"):
		return "", failed(exitUsage, "@ needs the name of a file", "use - for standard input")
	case !isFile && args[0] != "-":
		return args[0], nil
	}
	content, err := e.readInput(ctx, name)
	return string(content), err
}

// printRecord prints the result of a call except its error.
func (o *options) printRecord(record tool.Record) error {
	if o.json {
		return o.printJSON(record)
	}
	if !o.quiet {
		// Nothing can be done if it fails.
		_, _ = io.WriteString(o.stderr, view.Log(record.Function.Name, record.Log, o.verbose))
	}
	if text := view.Result(record.Result); text != "" {
		return o.print(text)
	}
	return nil
}

func (h *host) noteDeprecated(name string) {
	entry, ok := h.registry.Get(name)
	if !ok {
		return
	}
	if d := entry.Manifest.DeprecatedAs(name); d != nil {
		h.options.hint(cmp.Or(d.Alias, entry.Name) + " is " + view.Deprecation(*d))
	}
}
