package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/tool"
)

const batchHelp = `Run tool calls as a language model returned them and print one record a line, in the
order of the calls. The input is JSON in a file or on standard input: one call, an array
of calls, a message with "tool_calls", a chat completion with "choices", or several of
these one after the other.

Calls of read-only tools that stand next to each other run at the same time, and one that
asks what another has asked gets its answer; every other call runs by itself, in its
turn. Arguments that do not fit are repaired where there is no doubt about what was meant:
the record lists each change.

That a call fails is a normal result: its record says so, and the exit code is 0. It is 1
where the host itself failed, and 2 where the input cannot be read.

Results that are long are cut, since a model pays for each byte. The mark in a cut result
names the command that prints the rest. It is meant for whoever runs caisson: a model has
no shell, so hand on to it what "caisson explain --output" prints.

` + keptHelp

const batchExample = `  caisson batch response.json --tools ./wasm-tools
  caisson batch response.json --config caisson.yaml --profile strict
  caisson batch response.json --batch-timeout 1m --max-output 16KiB
  curl … | caisson batch --mount /project=./workspaces/{project_id}:rw --context project_id=demo`

func newBatch(env environment) *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:     "batch [FILE | -]",
		Short:   "run tool calls as a language model returned them",
		Long:    batchHelp,
		Example: batchExample,
		Args:    positional(0, 1, "a FILE or -"),
		RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("parallel") && o.parallel < 1 {
				return usageError(command, fmt.Sprintf("--parallel %d: want 1 or more", o.parallel))
			}
			return o.batch(command.Context(), env, append(args, "-")[0])
		},
	}
	o.sourceFlags(command)
	o.policyFlags(command)
	o.grantFlags(command)
	command.Flags().IntVar(&o.parallel, "parallel", 0, "most read-only calls that run at the same time, `N` (default 8)")
	command.Flags().Var(&o.batchTimeout, "batch-timeout",
		"most time that all calls together may take, as a `DURATION` such as 2m: those that still run are stopped then, and the rest is not started (default: none)")
	o.executorFlags(command, "64KiB, and 256KiB for all together in equal shares")
	o.runFlags(command)
	o.outputFlags(command, "changes nothing: records are JSON in any case")
	return command
}

func (o *options) batch(ctx context.Context, env environment, file string) (err error) {
	document, err := env.readInput(ctx, file)
	if err != nil {
		return err
	}
	calls, err := tool.ParseCalls(document)
	if err != nil {
		hint := `want a call such as {"id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": "{}"}}`
		if errors.Is(err, tool.ErrNoCalls) {
			hint = "a message without tool_calls has nothing to run"
		}
		return failed(exitUsage, err.Error(), hint)
	}
	cacheDir, err := o.cacheDir.path()
	if err != nil {
		return err
	}
	h, err := o.open(ctx, env, cacheDir)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, h.close(ctx)) }()
	done, err := h.execute(ctx, env, calls)
	if err != nil {
		return err
	}
	for _, record := range done.Records {
		if err := env.printJSON(record); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return failed(exitInterrupted, "interrupted")
	}
	return h.hostFailures(done)
}

// hostFailures returns what the operator must know of the calls, or nil.
func (h *host) hostFailures(done done) error {
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
	if len(all.messages) == 0 {
		return nil
	}
	return all
}
