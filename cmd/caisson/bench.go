package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/benchmark"
)

const benchHelp = `Measure this machine: one small tool natively, on plain wazero, on Extism's Go SDK and in
Caisson's sandbox, with guests in C, Rust and Go; what metering costs; and what start-up
and memory take. Schemes that are compared take turns, and every answer is checked.

The whole takes a few minutes, --short less than half of one on an idle machine. Compare
ratios rather than times: they carry over to other machines.

The Go guests are compiled when they are needed, which takes Go and a checkout of
Caisson as the current folder. Elsewhere they are left out.`

func newBench(env environment) *cobra.Command {
	var o options
	var each durationFlag
	var short bool
	command := &cobra.Command{
		Use:     "bench",
		Short:   "measure this machine, beside the alternatives",
		Long:    benchHelp,
		Example: "  caisson bench --short\n  caisson bench --json > numbers.json",
		Args:    positional(0, 0, ""),
		RunE: func(command *cobra.Command, _ []string) error {
			return o.bench(command.Context(), env, benchmark.Options{
				Compiler: env.compiler, Time: time.Duration(each), Short: short,
			})
		},
	}
	command.Flags().BoolVar(&short, "short", false, "give the kernels less to do, and leave out the memory of the Go guests and 64 callers with 64 KiB each")
	command.Flags().Var(&each, "time", "measure each row for a `DURATION` such as 5s (default 1s, or 30ms with --short)")
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
