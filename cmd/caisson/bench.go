package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/benchmark"
)

const benchHelp = `Benchmark this machine. One small tool runs natively, in plain wazero, in Extism's Go SDK
and in Caisson's sandbox, with guests written in C, Rust and Go. The report also covers the
cost of metering, start-up time and memory. Compared configurations take turns, and every
result is checked.

A full run takes a few minutes, --short less than half a minute on an idle machine.
Compare ratios rather than times: ratios carry over to other machines.

The Go guests are compiled on demand, which needs Go and a checkout of Caisson as the
current folder. Without these they are left out.`

func newBench(env environment) *cobra.Command {
	var o options
	var each durationFlag
	var short bool
	command := &cobra.Command{
		Use:     "bench",
		Short:   "benchmark this machine against the alternatives",
		Long:    benchHelp,
		Example: "  caisson bench --short\n  caisson bench --json > numbers.json",
		Args:    positional(0, 0, ""),
		RunE: func(command *cobra.Command, _ []string) error {
			return o.bench(command.Context(), env, benchmark.Options{
				Compiler: env.compiler, Time: time.Duration(each), Short: short,
			})
		},
	}
	command.Flags().BoolVar(&short, "short", false, "run smaller kernels, and skip the memory of the Go guests and the 64 KiB rows with 64 callers")
	command.Flags().Var(&each, "time", "measure each row for `DURATION`, such as 5s (default 1s, or 30ms with --short)")
	o.outputFlags(command, "print one JSON object")
	return command
}

func (o *options) bench(ctx context.Context, env environment, options benchmark.Options) error {
	if p := newProgress(env, o); p != nil {
		options.Progress = p.during
	}
	report, err := benchmark.Run(ctx, options)
	if err != nil {
		return err
	}
	return o.printReport(env, report)
}

func (o *options) printReport(env environment, report *benchmark.Report) error {
	for _, left := range report.LeftOut {
		if !o.quiet {
			printHint(env.stderr, "left out: "+left.What+": "+left.Reason)
		}
	}
	if o.json {
		return env.printJSON(report)
	}
	return env.print(report.Text())
}
