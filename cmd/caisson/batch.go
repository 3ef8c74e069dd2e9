package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/tool"
)

// batchOptions are the flags of the command.
type batchOptions struct {
	options
	dialect         string // as the flag has it; empty: recognised
	stream          string // [streamAuto], [streamEvents] or [streamResponses]; empty: none
	keep            string // the file for a batch that waits; empty: in the state folder
	resumed         string // the id or the file of the batch to go on with
	approve, refuse []string
	again           []string // the flags with which a batch that waits is gone on with
}

// noDialect is the value of --dialect for calls without anything around them that tells whose.
const noDialect = "none"

func newBatch(env environment) *cobra.Command {
	var o batchOptions
	command := &cobra.Command{
		Use:     "batch [FILE | -]",
		Short:   "run tool calls as a language model returned them",
		Long:    batchHelp,
		Example: batchExample,
		Args: func(command *cobra.Command, args []string) error {
			if err := o.checkForm(command, args); err != nil {
				return err
			}
			return positional(0, 1, "a FILE, OUTPUTS or -")(command, args)
		},
		RunE: func(command *cobra.Command, args []string) error {
			if err := o.check(command); err != nil {
				return err
			}
			o.again = flagsOf(command, env.args)
			if o.resumed != "" {
				return o.resume(command.Context(), env, args)
			}
			return o.batch(command.Context(), env, append(args, "-")[0])
		},
	}
	o.sourceFlags(command)
	o.policyFlags(command)
	o.grantFlags(command)
	flags := command.Flags()
	flags.IntVar(&o.parallel, "parallel", 0, "most read-only calls that run at the same time, `N` (default 8)")
	flags.Var(&o.batchTimeout, "batch-timeout",
		"most time that all calls together may take, as a `DURATION` such as 2m: those that still run are stopped then, and the rest is not started (default: none)")
	flags.StringVar(&o.dialect, "dialect", "",
		"read calls and write results, or with --resume read OUTPUTS, as a `DIALECT` has them: "+strings.Join(dialects.Names(), ", ")+", or "+noDialect+" (default: the one that is recognised)")
	flags.StringVar(&o.stream, "stream", "",
		"show what happens as it does, as `FORM`: events, one a line, or responses, the server-sent events of OpenAI's Responses API (default: that of the input)")
	flags.Lookup("stream").NoOptDefVal = streamAuto
	flags.StringVar(&o.keep, "state", "", "keep a batch that waits in a `FILE` (default: in the state folder, under the batch's id)")
	flags.StringVar(&o.resumed, "resume", "", "go on with the batch `ID|FILE` that waits")
	flags.StringArrayVar(&o.approve, "approve", nil,
		"with --resume: let a call run, as `CALL-ID@FINGERPRINT[=once|session|DURATION]`, with the fingerprint that was printed with it or its first 20 digits: it alone, or in this command also others that do the same in all, to its end or for so long; repeatable")
	flags.StringArrayVar(&o.refuse, "refuse", nil, "with --resume: do not let a call run, as `CALL-ID[=REASON]`; the model reads the reason; repeatable")
	o.executorFlags(command, "64KiB, and 256KiB for all together in equal shares")
	o.runFlags(command)
	o.outputFlags(command, "print one record a line, whatever the dialect of the calls")
	return command
}

// checkForm refuses the form of a stream where the name of a file is expected.
func (o *batchOptions) checkForm(command *cobra.Command, args []string) error {
	for _, form := range []string{streamEvents, streamResponses} {
		if o.stream == streamAuto && slices.Contains(args, form) && isMissing(form) {
			return usageError(command, fmt.Sprintf("there is no file %q; the form of a stream stands behind an equals sign: --stream=%s", form, form))
		}
	}
	return nil
}

// check refuses flags that do not go together.
func (o *batchOptions) check(command *cobra.Command) error {
	var wrong string
	switch {
	case command.Flags().Changed("parallel") && o.parallel < 1:
		wrong = fmt.Sprintf("--parallel %d: want 1 or more", o.parallel)
	case o.dialect != "" && o.dialect != noDialect && !slices.Contains(dialects.Names(), o.dialect):
		wrong = fmt.Sprintf("--dialect %q: want one of %s, or %s", o.dialect, strings.Join(dialects.Names(), ", "), noDialect)
	case !slices.Contains([]string{"", streamAuto, streamEvents, streamResponses}, o.stream):
		wrong = fmt.Sprintf("--stream=%q: want %s or %s", o.stream, streamEvents, streamResponses)
	case command.Flags().Changed("resume") && o.resumed == "":
		wrong = "--resume: want a batch's ID, or the FILE in which it is kept"
	case o.resumed == "" && len(o.approve)+len(o.refuse) > 0:
		wrong = "--approve and --refuse go with --resume: what is approved must have been looked at"
	case o.resumed != "" && o.keep != "":
		wrong = "--state goes without --resume: a batch that waits again stays where it was"
	default:
		return nil
	}
	return usageError(command, wrong)
}

// batch runs calls that nothing was done about yet.
func (o *batchOptions) batch(ctx context.Context, env environment, file string) (err error) {
	document, err := env.readInput(ctx, file)
	if err != nil {
		return err
	}
	asked, err := o.readCalls(document)
	if err != nil {
		return err
	}
	h, err := o.host(ctx, env, nil)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, h.close(ctx)) }()
	if err := o.canWait(ctx, h, asked.calls); err != nil {
		return err
	}
	r, err := h.runner(env)
	if err != nil {
		return err
	}
	defer r.close()
	view := o.view(env, asked.dialect)
	ended, err := r.execute(ctx, executor.Batch{Calls: asked.calls, Timeout: time.Duration(o.batchTimeout)}, view)
	if err != nil {
		return err
	}
	return o.tell(ctx, h, view, ended, func() (*batches.Place, error) { return o.place(ended.ID) })
}

// host opens the tools. Claims make sure that a batch is resumed once; they may be nil.
func (o *batchOptions) host(ctx context.Context, env environment, claims executor.Claimer) (*host, error) {
	cacheDir, err := o.cacheDir.path()
	if err != nil {
		return nil, err
	}
	return o.open(ctx, env, opening{cacheDir, true, claims})
}

// asked is calls as they were handed in.
type asked struct {
	calls   []tool.Call
	dialect dialects.Dialect // nil for none
}

// dialectNamed returns the dialect of that name, nil for none.
func dialectNamed(name string) (dialects.Dialect, error) {
	if name == "" || name == noDialect {
		return nil, nil
	}
	return known.ByName(name)
}

// hostFailures returns what the operator must know of the calls, or nil.
func (h *host) hostFailures(done done) *failure {
	all := &failure{code: exitFailed}
	add := func(call int, record tool.Record) {
		for _, m := range h.internalFailure(record, done.causes[record.CallID]).messages {
			m.text = fmt.Sprintf("call %d: %s", call+1, m.text)
			all.messages = append(all.messages, m)
		}
	}
	for i, record := range done.Records {
		if record.Result.Kind == tool.Internal {
			add(i, record)
		}
		for _, made := range done.ledger.failed {
			if made.Result.Kind == tool.Internal && done.ledger.root(made.CallID) == record.CallID {
				add(i, made)
			}
		}
	}
	if stuck := h.runaways.failure(); stuck != nil {
		all.code, all.messages = stuck.code, append(all.messages, stuck.messages...)
	}
	if len(all.messages) == 0 {
		return nil
	}
	return all
}

const batchHelp = `Run tool calls as a language model returned them. The input is a file or standard input:
a provider's whole response or streamed transcript, or JSON with one call, an array of
calls, a message with "tool_calls", or several of these one after the other.

What is printed is for the next request. A response of OpenAI (chat completions or the
Responses API), Anthropic, Gemini or MCP is recognised and answered as that provider takes
results: one JSON array on a line. --dialect says which it is. Calls with nothing around
them, and --json, give one record a line, in the order of the calls.

Calls of read-only tools that stand next to each other run at the same time, and one that
asks what another has asked gets its answer; every other call runs by itself, in its
turn. Arguments that do not fit are repaired where there is no doubt about what was meant:
the record lists each change.

That a call fails is a normal result: its record says so, and the exit code is 0. It is 1
where the host itself failed, 2 where the input cannot be read, and 5 where the batch waits.

--stream shows events as they happen: one JSON object with "type" a line, or server-sent
events. One call speaks at a time; hidden tools are silent. The last line (with server-sent
events the last event, caisson.batch) is an object with "status" and all that a program
needs to go on: "completed" with the "results" that are printed without --stream, or
"requires_action". Where the batch then cannot be kept or written, on a full disk for
instance, the exit code is 1, "status" is "failed", and "results" are the records of the
calls that have ended. Without --stream these are printed one a line, and on standard error
where nothing else can be written.

A batch waits (exit code 5) where the client runs a tool itself (execution: client), and
where a call needs approval: of a tool that is destructive, unless the policy's "approve"
or --approve-tool has it, and of one that the policy's "ask" or --ask names. Nobody is
asked on the terminal: programs drive this command. It prints one line of JSON instead:

  {"status": "requires_action", "batch": ID, "required_action": {"type":
   "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": [...], "call_ids": [...]}},
   "approvals": [...], "state": PATH, "expires": TIME}

"tool_calls" are the calls that the client runs, as the provider has them, and "call_ids"
our own ids of these. "approvals" say what is asked for: tool, arguments, permissions, what
it may call ("callees"), reason and fingerprint. --resume goes on, once for each wait, within 24 hours. One that is
killed cannot be gone on with: its calls may have run, which "caisson explain" shows. Tools,
policy, context values and other flags are given again; the hint has the whole command. All
that waits is answered together: by OUTPUTS, which are results as the provider takes them
(or approvals, where it has such), or

  {"tool_outputs": [{"tool_call_id": ID, "output": "TEXT"}], "approvals":
   [{"call_id": ID, "approve": true, "fingerprint": FINGERPRINT}]}

and by --approve ID@FINGERPRINT and --refuse ID. The fingerprint is that of the call that was
looked at; --approve takes its first 20 digits as well. A call that has another fingerprint
by now is not run. Take it from what was printed, not from the file in which the batch is
kept. Instead of "output", "result" holds a whole result, such as {"success": false,
"error": "..."}. A submission with a mistake in it changes nothing. A call that was approved
and has not run when the batch waits again is asked for again.

Results that are long are cut, since a model pays for each byte. The mark in a cut result
names the command that prints the rest. It is meant for whoever runs caisson: a model has
no shell, so hand on to it what "caisson explain --output" prints.

` + keptHelp + `
Batches that wait are kept there, too, with their calls and the results so far. No tool may
be able to write to where they are kept: it could change what is approved.`

const batchExample = `  caisson batch response.json --tools ./wasm-tools
  caisson batch response.json --config caisson.yaml --profile strict --json
  caisson batch response.json --batch-timeout 1m --max-output 16KiB --stream
  curl … | caisson batch --mount /project=./workspaces/{project_id}:rw --context project_id=demo
  caisson batch --resume 019c1a2b-3c4d-7e5f-8a9b-0c1d2e3f4a5b outputs.json --approve call_2@5f0c8a91d3e27b640fce --refuse 'call_3=not this file'`

// kept is what a command keeps, and what a tool could do to it that can write there.
type kept struct{ what, harm string }

var (
	keptBatch   = kept{"a batch that waits is", "it could change what somebody approves of"}
	keptRecords = kept{"the records of calls are", `it could change what "caisson explain" shows`}
)

// keepsFromTools refuses folders where a tool that is loaded may write: it could change a batch
// before somebody approves of it, have it run twice, or forge records. All tools count, and not only
// those that are called: these may call others, and while a batch waits other batches run.
func (h *host) keepsFromTools(k kept, dirs []string) error {
	for _, dir := range dirs {
		writer, found, err := h.WriterTo(dir, h.operator.context)
		if err != nil {
			return failed(exitUsage, fmt.Sprintf("%s kept in %s, and it cannot be told whether a tool may write there: %v", k.what, dir, folder.Reason(err)))
		}
		if found {
			return failed(exitUsage, fmt.Sprintf("%s kept in %s, and %s may write there (to %s): %s", k.what, dir, writer.Tool, writer.Dir, k.harm),
				"choose folders that no tool may write to: with --state-dir DIR, and with --state FILE where that was given")
		}
	}
	return nil
}

// readCalls reads the calls of a document, and finds out whose it is. Nothing runs whose result
// could not be handed back.
func (o *batchOptions) readCalls(document []byte) (asked, error) {
	dialect, err := o.dialectOf(document)
	if err != nil {
		return asked{}, err
	}
	if dialect == nil {
		calls, err := tool.ParseCalls(document)
		if err != nil {
			return asked{}, notCalls(err)
		}
		return asked{calls: calls}, nil
	}
	response, err := known.ReadIn(dialect, document)
	if err == nil && len(response.ToolCalls) == 0 {
		err = tool.ErrNoCalls
	}
	if err != nil {
		return asked{}, notCallsIn(dialect, err)
	}
	if o.json {
		return asked{response.ToolCalls, dialect}, nil
	}
	if err := answerable(dialect, response.ToolCalls); err != nil {
		return asked{}, failed(exitUsage, err.Error(), "--json prints records instead, for which that is no matter")
	}
	return asked{response.ToolCalls, dialect}, nil
}

// dialectOf returns the dialect that the flag names, or else that of the document; nil for none.
func (o *batchOptions) dialectOf(document []byte) (dialects.Dialect, error) {
	if o.dialect != "" {
		return dialectNamed(o.dialect)
	}
	dialect, _ := known.Detect(document)
	return dialect, nil
}

// answerable reports why results of these calls could not be written.
func answerable(dialect dialects.Dialect, calls []tool.Call) error {
	records := make([]tool.Record, len(calls))
	for i, call := range calls {
		records[i] = tool.Record{Call: call, Result: tool.Result{Success: true}}
	}
	if _, err := dialect.Results(records); err != nil {
		return err
	}
	_, err := dialect.Calls(calls)
	return err
}

// notCalls says what is wanted instead of a document that holds no calls.
func notCalls(err error) *failure {
	if errors.Is(err, tool.ErrNoCalls) {
		return failed(exitUsage, err.Error(), "a message without tool_calls has nothing to run")
	}
	return failed(exitUsage, err.Error(),
		`want a call such as {"id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": "{}"}}`,
		"or a response of one of these, whole or streamed: "+strings.Join(dialects.Names(), ", ")+"; --dialect says which")
}

// notCallsIn is the same where it is known what the document should be.
func notCallsIn(dialect dialects.Dialect, err error) *failure {
	if errors.Is(err, tool.ErrNoCalls) {
		return failed(exitUsage, "tool calls: "+err.Error(), "a message without tool_calls has nothing to run")
	}
	return failed(exitUsage, err.Error(), "it was read as a response of "+dialect.Name()+"; --dialect names another, or "+noDialect+" for calls with nothing around them")
}
