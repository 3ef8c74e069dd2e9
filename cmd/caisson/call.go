package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/tool"
)

const callHelp = `Run one tool and print its output. The arguments are a JSON object: on the command
line, in a file (@FILE), or on standard input (-). Without any they are {}.

What the tool logs goes to standard error, each line behind the tool's name. Characters
that would change the terminal are printed as escapes such as \x1b. --json prints the
record of the call on one line instead, exactly as it is, whether or not it failed.

A tool may call others, if its manifest asks for it and --allow-call or the policy
allows it. What those were asked and answered, "caisson explain" shows.

A destructive tool runs: that it was named here is all the approval that it needs. Where
the policy, or --ask, has calls of a tool wait for approval, --approve gives it. A tool
that the client runs itself cannot be called: caisson has no client.

` + keptHelp

const callExample = `  caisson call calculator '{"expression": "2*(3+4.5)"}'
  caisson call file_read '{"path": "notes.txt"}' --mount /project=./workspace --context project_id=demo
  caisson call fetch_page '{"url": "https://example.com"}' --allow-net example.com
  caisson call web_search '{"query": "tide times"}' --config caisson.yaml
  caisson call site_digest '{"url": "https://example.com"}' --allow-call fetch_page --allow-net example.com
  caisson call calculator @arguments.json --json`

func newCall(env environment) *cobra.Command {
	var o callOptions
	command := &cobra.Command{
		Use:     "call NAME [JSON | @FILE | -]",
		Short:   "run one tool",
		Long:    callHelp,
		Example: callExample,
		Args:    positional(1, 2, "a tool's NAME and its arguments as JSON, @FILE or -"),
		RunE: func(command *cobra.Command, args []string) error {
			return o.call(command.Context(), env, args)
		},
	}
	o.sourceFlags(command)
	o.policyFlags(command)
	o.grantFlags(command)
	o.maxOutput.unlimited = true
	o.executorFlags(command, "unlimited")
	o.runFlags(command)
	o.outputFlags(command, "print the record of the call as one line of JSON")
	command.Flags().BoolVar(&o.approve, "approve", false, "approve of the call, where --ask or the policy has calls of the tool wait for that")
	return command
}

// callOptions are the flags of the command.
type callOptions struct {
	options
	approve bool
}

func (o *callOptions) call(ctx context.Context, env environment, args []string) (err error) {
	arguments, err := env.readArguments(ctx, args[1:])
	if err != nil {
		return err
	}
	cacheDir, err := o.cacheDir.path()
	if err != nil {
		return err
	}
	h, err := o.open(ctx, env, opening{cacheDir: cacheDir, runs: true})
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, h.close(ctx)) }()
	done, err := h.order(ctx, env, o.approve, tool.Call{ID: "call_1", Type: tool.FunctionCall, Function: tool.Function{Name: args[0], Arguments: arguments}})
	if err != nil {
		return err
	}
	record := done.Records[0]
	if err := o.printRecord(env, record); err != nil {
		env.printLost(done.Records)
		return err
	}
	if record.Result.Kind != "" {
		failure := h.failureOf(record, done.causes[record.CallID])
		return failure.causedBy(orderHints(record)).causedBy(h.nestedHints(done)).explainedBy(record, done.ledger.kept())
	}
	h.noteDeprecated(env, record.Function.Name)
	if failure := h.runaways.failure(); failure != nil { // of a call that it made
		return failure
	}
	return nil
}

// firstOf returns the error that came first.
func firstOf(err, later error) error {
	if err != nil {
		return err
	}
	return later
}

// readArguments returns the arguments that the command line names.
func (e environment) readArguments(ctx context.Context, args []string) (string, error) {
	if len(args) == 0 {
		return "{}", nil
	}
	name, isFile := strings.CutPrefix(args[0], "@")
	switch {
	case isFile && (name == "" || name == "-"):
		return "", failed(exitUsage, "@ needs the name of a file", "say - for standard input")
	case !isFile && args[0] != "-":
		return args[0], nil
	}
	content, err := e.readInput(ctx, name)
	return string(content), err
}

// printRecord prints what a call came to, but for the error.
func (o *options) printRecord(env environment, record tool.Record) error {
	if o.json {
		return env.printJSON(record)
	}
	if !o.quiet {
		env.printLog(record.Function.Name, record.Log, o.verbose)
	}
	if text := readable(record.Result); text != "" {
		return env.print(text)
	}
	return nil
}

// shownLog is how many lines of a tool's log are shown. A program that crashes may leave
// hundreds.
const shownLog = 20

// printLog passes on what a tool wrote to stderr. Each line has the tool's name in
// front, so that none can pass for a message of this command.
func (e environment) printLog(name, log string, all bool) {
	if log = strings.TrimRight(log, "\n"); log == "" {
		return
	}
	lines := strings.Split(log, "\n")
	left := 0
	if len(lines) > shownLog && !all {
		left = len(lines) - shownLog
		lines = lines[:shownLog]
	}
	prefix := sanitiseLine(name) + ": log: "
	// Nothing can be done about a stderr that fails.
	for _, line := range lines {
		_, _ = fmt.Fprintln(e.stderr, prefix+sanitise(line))
	}
	if left > 0 {
		_, _ = fmt.Fprintf(e.stderr, "%s[%s; --verbose shows all]\n", prefix, count(left, "more line"))
	}
}

// noteDeprecated tells whoever called a tool that another one should be.
func (h *host) noteDeprecated(env environment, name string) {
	entry, ok := h.registry.Get(name)
	if !ok || h.options.quiet || entry.Manifest.Deprecated == nil {
		return
	}
	printHint(env.stderr, entry.Name+" is "+deprecation(entry.Manifest.Deprecated))
}
