package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/tool"
)

func newBatch(given options) *cobra.Command {
	o := batchOptions{options: given}
	command := &cobra.Command{
		Use:     "batch [FILE | -] [flags]\n  caisson batch --resume BATCH-ID|STATE-FILE [OUTPUTS | -]",
		Short:   "run the tool calls of a language model's response",
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
			o.flags = flagsOf(command, o.args, func(name string) bool { return !slices.Contains(ofOneRun, name) })
			if o.resumed != "" {
				return o.resume(command.Context(), args)
			}
			return o.batch(command.Context(), append(args, "-")[0])
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.parallel, "parallel", 0, "run at most `N` read-only calls in parallel (default 8)")
	flags.Func("batch-timeout",
		"time limit for the whole batch, a `DURATION` such as 2m: running calls are stopped and the rest are not started "+
			"(default: none)",
		parsedInto(&o.batchTimeout, parseDuration))
	flags.StringVar(&o.dialect, "dialect", "",
		"the format of the input (the calls, or OUTPUTS with --resume) and of the results, a `DIALECT`: "+
			strings.Join(dialects.Names(), ", ")+", or "+noDialect+" (default: detected)")
	flags.BoolFunc("stream",
		"print events as they happen; FORM is events (one per line), responses (the server-sent events of OpenAI's "+
			"Responses API) or auto; auto, the default, means responses if the input is in that format, and otherwise events",
		func(form string) error {
			o.stream = cmp.Or(strings.TrimPrefix(form, streamForm), streamAuto)
			return nil
		})
	flags.Lookup("stream").NoOptDefVal = streamForm
	flags.StringVar(&o.keep, "state", "",
		"store a paused batch in `FILE` (default: in the state folder, under the batch's id)")
	o.stateKeyFlag(command, "a paused batch is encrypted with the first key, and a batch to resume is decrypted with any "+
		"of them")
	flags.StringVar(&o.resumed, "resume", "", "resume the paused batch `BATCH-ID|STATE-FILE`")
	flags.StringArrayVar(&o.approve, "approve", nil,
		"with --resume: approve a call if its fingerprint is unchanged: `CALL-ID@FINGERPRINT[=once|session|DURATION]`; "+
			"=once approves only this call (the default), =session also identical calls later in this command, =10m also "+
			"identical calls within 10 minutes; repeatable")
	flags.StringArrayVar(&o.refuse, "refuse", nil,
		"with --resume: refuse the call `CALL-ID[=REASON]`; the model sees the reason; repeatable")
	o.runFlags(command, "every call", "64KiB, or an equal share of 256KiB if the batch has more than four calls",
		"store records for \"caisson explain\", and paused batches, in `DIR`; with \"\", no records are stored unless "+
			"--ledger is given, and a batch that may pause needs --state FILE")
	o.outputFlags(command, "print one record per line, whatever the dialect")
	o.completes(command)
	return command
}

// checkForm rejects the form of a stream in the place of a file name.
func (o *batchOptions) checkForm(command *cobra.Command, args []string) error {
	for _, form := range []string{streamEvents, streamResponses} {
		if o.stream == streamAuto && slices.Contains(args, form) && check.IsMissing(form) {
			return usageError(command,
				fmt.Sprintf("there is no file %q; to choose the form of a stream, write --stream=%s", form, form))
		}
	}
	return nil
}

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
		wrong = "--resume: want the BATCH-ID of a paused batch, or the STATE-FILE in which it is stored"
	case o.resumed == "" && len(o.approve)+len(o.refuse) > 0:
		wrong = "--approve and --refuse need --resume: calls must be reviewed before they are approved"
	case o.resumed != "" && o.keep != "":
		wrong = "--state cannot be used with --resume: a batch that pauses again stays in its file"
	default:
		return nil
	}
	return usageError(command, wrong)
}

func (o *batchOptions) batch(ctx context.Context, file string) (err error) {
	document, err := o.readInput(ctx, file)
	if err != nil {
		return err
	}
	calls, dialect, err := o.readCalls(document)
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		o.hint("the response has no tool calls, so nothing was run")
	}
	called := []string{}
	for _, call := range calls {
		called = append(called, call.Function.Name)
	}
	h, err := o.open(ctx, openMode{runs: true, called: called})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	h.noteUnsentSecrets(called)
	if err := o.canWait(ctx, h, calls); err != nil {
		return err
	}
	if err := h.start(ctx); err != nil {
		return err
	}
	v := o.view(dialect)
	ended, err := h.execute(ctx, executor.Batch{Calls: calls, Timeout: o.batchTimeout}, v)
	if err != nil {
		return err
	}
	return o.tell(ctx, h, v, ended, nil)
}

const batchHelp = `Run the tool calls of a language model's response. The input is a file or standard input.
It is a response from OpenAI (chat completions or the Responses API), Anthropic or Gemini,
either as one JSON document or as the saved events of a stream; or an MCP request; or plain
calls. A plain call is

  {"id": "call_1", "function": {"name": "calculator", "arguments": {"expression": "1+1"}}}

Plain calls can be one such object, an array of them, a message that has that array as
"tool_calls", or several of these documents one after the other.

The format of the input is detected, unless --dialect names it. The results are printed as
one JSON array in the provider's format, ready for the next request. For plain calls, and
with --json, the output is one record per line, in the order of the calls. For a response
without calls, the array is empty, and a hint says so.

If the response was cut off, for example by a token limit, a hint says so. A call that
is incomplete is not run, and its result says why. Items of the provider's own tools, such
as computer_call and mcp_approval_request, are neither run nor answered; a hint names
them.

Adjacent calls of read-only tools run in parallel, and identical ones run once. All other
calls run one at a time, in order. Arguments that do not match the schema are repaired
where the intent is clear; the record lists every change.

Exit codes:
  0    all calls have ended; a call that failed says so in its result
  1    the provider reported an error instead of a response, or Caisson itself failed
  2    usage or configuration error, or the input cannot be read
  4    a tool could not be stopped at its deadline, which is a bug in Caisson
  5    the batch is paused
  130  interrupted

--stream prints events while the batch runs: one JSON object with a "type" per line, or
server-sent events. Calls run in parallel, but their output appears one call after
another: from a call's first output until its end, the output of the other calls waits.
Hidden tools (see "caisson list --help") have no events.

The last line that --stream prints has everything that a program needs to continue. Its
"status" is "completed", with the "results" that would be printed without --stream, or
"requires_action", with the fields shown below for paused batches. In a stream of
server-sent events, all of this is in the last event, caisson.batch. If a paused batch
cannot be stored, for example because the disk is full, the exit code is 1, the "status" is
"failed", and "results" holds the records of the calls that ended. Without --stream, these
records are then printed, one per line. If standard output fails, they go to standard error.

Paused batches

A batch pauses (exit code 5) when the client must run a call, because its tool's manifest
says execution: client, or when a call needs approval. Two kinds of call need approval:

  - calls of destructive tools, whose manifests say behavior: {destructive: true}, unless
    the policy's "approve" or --approve-tool covers them
  - calls of tools that the policy's "ask" or --ask names

There is no prompt, since this command is meant for programs. Instead it prints one line
of JSON:

  {"status": "requires_action", "batch": BATCH-ID, "required_action": {"type":
   "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": [...], "call_ids": [...]}},
   "approvals": [...], "state": STATE-FILE, "expires": TIME}

"tool_calls" are the calls for the client to run, in the provider's format; "call_ids" are
their Caisson ids. "approvals" lists what needs approval: tool, arguments, permissions, the
tools it may call ("callees"), the reason, and a fingerprint: a hash of the call and of what
decides its effect, such as its tool, complete arguments, context values and permissions.

Resume the batch with --resume within 24 hours. Each pause can be resumed once. Pass the
same flags again; the printed hint has the full command. A resumed batch that is killed
cannot be resumed again, since its calls may have run: see "caisson explain".

Answer all calls and approvals in one submission. OUTPUTS is a file, or - for standard
input, in one of two formats. The first is the provider's format, with the results of calls,
and with approvals if the provider's format has them. It may contain the whole conversation:
only the part after the model's last message counts. The second is

  {"tool_outputs": [{"tool_call_id": CALL-ID, "output": "TEXT"}], "approvals":
   [{"call_id": CALL-ID, "approve": true, "fingerprint": FINGERPRINT}]}

"result" can replace "output" to give a full result, such as {"success": false, "error":
"..."}. --approve CALL-ID@FINGERPRINT and --refuse CALL-ID answer approvals on the command
line. A CALL-ID is the id that Caisson gave the call, or the id that the provider gave it,
if no other paused call has that id. --approve also accepts the first 20 digits of the
fingerprint. Take the fingerprint from the printed line, not from the state file. If a
call's fingerprint has changed since, the call does not run. A submission with an error
changes nothing. If the batch pauses again before an approved call has run, that call must
be approved again.

Long results are truncated, because every byte sent to a model costs money. The truncated
result names the "caisson explain --output" command that prints the rest. A model has no
shell and cannot run that command, so pass on the parts that it needs.

` + keptHelp + `

Paused batches are always stored in the state folder, with their calls and results so far,
even with --ledger. Without a state folder, a batch that may pause needs --state FILE.
Caisson refuses a state folder that a tool can write to, since the tool could then change
what is approved. --state-key encrypts what is stored of a batch, so that a copy of the file
or of its disk shows nothing.`

const batchExample = `  caisson batch response.json --tools ./wasm-tools
  caisson batch response.json --config caisson.yaml --profile strict --json
  caisson batch response.json --batch-timeout 1m --max-output 16KiB --stream
  curl … | caisson batch --mount /project=./workspaces/{project_id}:rw --context project_id=demo
  caisson batch --resume 019c1a2b-3c4d-7e5f-8a9b-0c1d2e3f4a5b outputs.json ` +
	`--approve call_2@5f0c8a91d3e27b640fce --refuse 'call_3=not this file'`

// readCalls reads the calls of a document, and fails before anything runs if their results could not be written.
func (o *batchOptions) readCalls(document []byte) ([]tool.Call, dialects.Dialect, error) {
	dialect, err := dialectNamed(o.dialect)
	if o.dialect == "" {
		dialect, _ = known.Detect(document)
	}
	if err != nil {
		return nil, nil, err
	}
	if dialect == nil && o.dialect == "" && len(document) > dialects.MaxDocument {
		return nil, nil,
			failed(exitUsage,
				fmt.Sprintf("the input has %d bytes, and a response may have %d", len(document), dialects.MaxDocument),
				"pass plain calls with --dialect "+noDialect+" in up to "+fmt.Sprint(maxInput)+" bytes, or several batches")
	}
	if dialect == nil {
		calls, err := tool.ParseCalls(document)
		if err != nil && !(errors.Is(err, tool.ErrNoCalls) && isMessage(document)) {
			if words := gatewayError(document); words != "" {
				return nil, nil, failed(exitFailed, words, "no call was run")
			}
			return nil, nil, notCalls(err)
		}
		return calls, nil, nil
	}
	response, err := known.ReadIn(dialect, document)
	if wrong, ok := errors.AsType[*dialects.Error](err); ok && wrong.Reported {
		return nil, nil, failed(exitFailed, wrong.Message, "no call was run")
	}
	if err != nil {
		return nil, nil, notCalls(err, "it was read as a response in the format of "+dialect.Name()+
			"; choose another with --dialect, or "+noDialect+" for plain calls")
	}
	if !o.json {
		if err := answerable(dialect, response.ToolCalls); err != nil {
			return nil, nil, failed(exitUsage, err.Error(), "use --json to print records instead")
		}
	}
	o.remark(dialect, &response)
	return response.ToolCalls, dialect, nil
}

// gatewayError returns the message of an error document of a gateway in front of a provider's API, which no dialect
// reads: {"message": …}, {"detail": …} or a page. It returns "" for any other document.
func gatewayError(document []byte) string {
	if bytes.HasPrefix(bytes.TrimSpace(document), []byte("<")) {
		return "the input is HTML or XML, such as the error page of a gateway, and not JSON"
	}
	var report struct{ Message, Detail any }
	if json.Unmarshal(document, &report) != nil {
		return ""
	}
	for _, said := range []any{report.Message, report.Detail} {
		if words, ok := said.(string); ok && words != "" {
			return "the input is an error: " + tool.Shown(words, 512)
		}
	}
	return ""
}

// isMessage reports whether a document is a model's message in plain text, without calls.
func isMessage(document []byte) bool {
	var message struct {
		Role, Content *string
		Calls         []json.RawMessage `json:"tool_calls"`
		Call          json.RawMessage   `json:"function_call"`
	}
	err := json.Unmarshal(document, &message)
	return err == nil && message.Role != nil && message.Content != nil && len(message.Calls) == 0 && message.Call == nil
}

// answerable returns an error if results of these calls could not be written.
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

// notCalls returns the failure for a document that is neither calls nor a message. The hints say what to pass.
func notCalls(err error, hints ...string) *failure {
	if len(hints) == 0 {
		hints = []string{
			`want a call such as {"id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": "{}"}}`,
			"or a response of one of these, whole or streamed: " + strings.Join(dialects.Names(), ", ") +
				"; --dialect selects one",
		}
	}
	return failed(exitUsage, err.Error(), hints...)
}

// maxNamed is the maximum number of items of a response that a hint names.
const maxNamed = 8

// remark prints hints about parts of a response that this command neither runs nor answers.
func (o *batchOptions) remark(dialect dialects.Dialect, response *tool.ChatResponse) {
	if response.FinishReason.WasCut() {
		text := fmt.Sprintf("the response was cut off (%s), so text or calls may be missing",
			tool.Shown(string(response.FinishReason), 64))
		if slices.ContainsFunc(response.ToolCalls, func(call tool.Call) bool { return call.Incomplete }) {
			text += "; a call in which it was cut off is not run, and its result says so"
		}
		o.hint(text)
	}
	o.hint(response.Remarks...)
	var waiting, others []string
	for _, item := range response.ProviderItems {
		name := strings.TrimSpace(cmp.Or(tool.Shown(item.Type, 64), "an item without a type") + " " + tool.Shown(item.ID, 64))
		if item.Waiting {
			waiting = append(waiting, name)
		} else {
			others = append(others, name)
		}
	}
	waits, owner := "the provider waits", "of the provider's own tools"
	if dialect.Name() == dialects.MCP {
		waits, owner = "the client waits", "since only tools/call runs a tool"
	}
	if len(waiting) > 0 {
		o.hint(waits + " for your own answer to " + namesOf(waiting) +
			": caisson does not run it; send the answer together with these results")
	}
	if len(others) > 0 {
		o.hint("not used: " + namesOf(others) + ", " + owner)
	}
}

// namesOf joins names, and counts those that are too many to be named.
func namesOf(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
