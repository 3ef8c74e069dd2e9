package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const callHelp = `Run one tool and print its output. Arguments are a JSON object, given on the command
line, in a file (@FILE), or on standard input (-). The default is {}.

The tool's log goes to standard error, with the tool's name before each line. Characters
that could change the terminal are escaped, such as \x1b. With --json the whole record of
the call is printed on one line instead, unchanged, whether or not the call failed.

A tool can call other tools if its manifest asks for that and the operator allows it, with
--allow-call or in the policy. "caisson explain" shows those calls and their results.

Naming a destructive tool here is enough approval to run it. If --ask or the policy
requires approval for a tool's calls, add --approve. Tools that the client runs
(execution: client) cannot be called here.

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
	command.Flags().BoolVar(&o.approve, "approve", false, "approve this call, if --ask or the policy requires approval")
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
	if failure := h.runaways.failure(); failure != nil { // in a call that it made
		return failure
	}
	return nil
}

// firstOf returns the first error that is not nil.
func firstOf(err, later error) error {
	if err != nil {
		return err
	}
	return later
}

// readArguments returns the arguments given on the command line.
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

// shownLog is how many lines of a tool's log are shown. A program that crashes may write hundreds.
const shownLog = 20

// printLog prints what a tool wrote to stderr. Each line is prefixed with the tool's name, so that
// none looks like a message of this command.
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
	// Nothing can be done if stderr fails.
	for _, line := range lines {
		_, _ = fmt.Fprintln(e.stderr, prefix+sanitise(line))
	}
	if left > 0 {
		_, _ = fmt.Fprintf(e.stderr, "%s[%s; --verbose shows all]\n", prefix, count(left, "more line"))
	}
}

// noteDeprecated prints a hint if the called tool is deprecated.
func (h *host) noteDeprecated(env environment, name string) {
	entry, ok := h.registry.Get(name)
	if !ok || h.options.quiet || entry.Manifest.Deprecated == nil {
		return
	}
	printHint(env.stderr, entry.Name+" is "+deprecation(entry.Manifest.Deprecated))
}

// runner runs calls in one session, which ends with this process. Close it.
type runner struct {
	host    *host
	session *executor.Session
	env     environment
}

// done is the outcome of a batch.
type done struct {
	executor.Report
	ledger *ledger
	// causes holds the host's own failures by call id. Records leave them out.
	causes map[string]error
}

// runner returns a runner for calls.
func (h *host) runner(env environment) (*runner, error) {
	if err := h.asksOfTools(); err != nil {
		return nil, err
	}
	if err := h.recordsApart(); err != nil {
		return nil, err
	}
	r := &runner{host: h, env: env}
	var err error
	if r.session, err = h.NewSession(executor.SessionOptions{Context: h.operator.context}); err != nil {
		r.close()
		return nil, usual(err)
	}
	return r, nil
}

// close closes the runner after its calls have ended.
func (r *runner) close() { r.host.ledger.close(r.env) }

// execute runs new calls, and prints events if v follows them.
func (r *runner) execute(ctx context.Context, batch executor.Batch, v *view) (done, error) {
	ctx, cancel := r.host.runaways.within(ctx)
	defer cancel()
	batch.Session = r.session
	var report executor.Report
	var err error
	if v.follows() {
		report, err = r.host.Stream(ctx, batch, v.follow)
	} else {
		report, err = r.host.Execute(ctx, batch)
	}
	return r.done(report), usual(err)
}

// resume resumes a paused batch like execute.
func (r *runner) resume(ctx context.Context, resumption executor.Resumption, v *view) (done, error) {
	resumption.Session = r.session
	running, cancel := r.host.runaways.within(ctx)
	defer cancel()
	var report executor.Report
	var err error
	if v.follows() {
		report, err = r.host.ResumeStream(running, resumption, v.follow)
	} else {
		report, err = r.host.Resume(running, resumption)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // it was interrupted before anything ran
	}
	return r.done(report), err
}

func (r *runner) done(report executor.Report) done {
	return done{report, r.host.ledger, r.host.witness.causes}
}

// usual converts an error of the executor that is not in a record to a usage error.
func usual(err error) error {
	var known *failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	return failed(exitUsage, err.Error())
}

// recordsApart rejects a folder for records that a tool may write to.
func (h *host) recordsApart() error {
	folder, err := h.options.state.records()
	if err != nil || folder == "" {
		return nil // the ledger reports that nothing is kept
	}
	return h.keepsFromTools(keptRecords, []string{string(folder)})
}

// asksOfTools rejects an --ask that matches no tool, because somebody relies on it.
func (h *host) asksOfTools() error {
	var tools []*manifests.Manifest
	for _, entry := range h.registry.List() {
		if entry.Manifest != nil {
			tools = append(tools, entry.Manifest)
		}
	}
	near := func(name string) []string { return h.registry.Nearest(name, 1) }
	if u, found := unapplied.Unnamed(h.options.asks, tools, near); found {
		return failed(exitUsage, fmt.Sprintf("%s: %s", u.Origin, u.Text), u.Fix)
	}
	return nil
}

// order runs one call requested by a person. The request approves the call unless a flag or the
// policy requires approval for calls of its tool.
func (h *host) order(ctx context.Context, env environment, approved bool, call tool.Call) (_ done, err error) {
	entry, known := h.registry.Get(call.Function.Name)
	if known && entry.Manifest.Execution == manifests.ExecutionClient {
		return done{}, failed(exitUsage, fmt.Sprintf("%s is run by the client, and caisson call has no client", entry.Name),
			`"caisson batch" prints the call, and accepts its output with --resume`)
	}
	r, err := h.runner(env)
	if err != nil {
		return done{}, err
	}
	defer r.close()
	ended, err := r.execute(ctx, executor.Batch{Calls: []tool.Call{call}}, nil)
	// What an approval covers may change while the call is paused, so limit the number of attempts.
	for tries := 0; err == nil && ended.Status == executor.RequiresAction && tries < 3; tries++ {
		ended, err = h.decide(ctx, r, ended, approved || !h.operator.asks(entry.Manifest))
	}
	if err == nil && ended.Status == executor.RequiresAction {
		return done{}, failed(exitFailed, entry.Name+": what it may do keeps changing, so the call cannot be approved")
	}
	if ctx.Err() != nil {
		return ended, err
	}
	return ended, usual(err)
}

// decide resumes a call that is paused for approval.
func (h *host) decide(ctx context.Context, r *runner, waiting done, approve bool) (done, error) {
	resumption := executor.Resumption{State: *waiting.State}
	for _, action := range waiting.Pending {
		approval := tool.Approval{CallID: action.CallID, Approve: approve, Fingerprint: action.Fingerprint}
		if !approve {
			approval.Reason = action.Reason
		}
		resumption.Approvals = append(resumption.Approvals, approval)
	}
	return r.resume(ctx, resumption, nil)
}

// orderHints says how to run a call for which the request is not enough approval.
func orderHints(record tool.Record) []string {
	if len(record.Denials) == 0 || record.Denials[0].Permission != approvalPermission {
		return nil
	}
	return []string{"approve it with --approve"}
}
