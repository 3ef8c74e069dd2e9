package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
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
