package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/benchmark"
)

const benchHelp = `Compare Caisson's speed with the alternatives on this machine. One small tool runs natively,
in plain wazero, in Extism's Go SDK and in Caisson's sandbox. There are versions of it in C,
Rust and Go, and an Extism plug-in in AssemblyScript. The report also covers the cost of
counting instructions (metering), and compares calls of script tools with starting the
native Python and Node. Runs of the configurations being compared are interleaved, and
every result is checked.

On an idle machine, a full run takes a few minutes, and --short less than half a minute.
Compare ratios rather than times: ratios carry over to other machines.

The Go guests are compiled on demand, which needs Go and a checkout of Caisson as the
current folder. Scripts need their interpreters: see "caisson interpreters". Measurements
without their compiler or interpreter are left out.`

func newBench(o options) *cobra.Command {
	var run benchmark.Options
	command := &cobra.Command{
		Use:     "bench",
		Short:   "compare Caisson's speed with native code, wazero and Extism on this machine",
		Long:    benchHelp,
		Example: "  caisson bench --short\n  caisson bench --json > numbers.json",
		Args:    positional(0, 0, ""),
		RunE: func(command *cobra.Command, _ []string) error {
			run.Compiler = o.compiler
			return o.bench(command.Context(), run)
		},
	}
	command.Flags().BoolVar(&run.Short, "short", false,
		"run smaller workloads, and skip one measurement: 64 parallel callers with 64 KiB arguments")
	command.Flags().Func("time",
		"measure each line of the report for `DURATION`, such as 5s (default 1s, or 30ms with --short)",
		parsedInto(&run.Time, parseDuration))
	o.interpreterFlag(command)
	o.outputFlags(command, "print one JSON object")
	return command
}

func (o *options) bench(ctx context.Context, options benchmark.Options) (err error) {
	if options.Interpreters, err = o.interpreterFolder(); err != nil {
		return err
	}
	if p := o.newProgress(); p != nil {
		options.Progress = p.during
	}
	report, err := benchmark.Run(ctx, options)
	if err != nil {
		return err
	}
	return o.printReport(report)
}

func (o *options) printReport(report *benchmark.Report) error {
	for _, left := range report.LeftOut {
		o.hint("left out: " + left.What + ": " + left.Reason)
	}
	return o.show(report, report.Text())
}
