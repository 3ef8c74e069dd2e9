package main

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// reuseFor is for how long the answer of a read-only tool is used again whose manifest does
// not say.
const reuseFor = 5 * time.Minute

// executorFlags are how calls are read, answered and cut. Uncut is what happens to results
// where the flag for their size is not given.
func (o *options) executorFlags(command *cobra.Command, uncut string) {
	flags := command.Flags()
	flags.BoolVar(&o.noRepair, "no-repair", false,
		"use arguments as written: do not repair what does not match the schema, and do not fill in defaults")
	flags.BoolVar(&o.tolerantJSON, "tolerant-json", false,
		"accept arguments that are almost JSON: single quotes, trailing commas, comments, True and None, code fences, unclosed brackets")
	flags.BoolVar(&o.noReuse, "no-reuse", false,
		"run every call, even if a read-only tool was just called with the same arguments")
	flags.Var(&o.maxOutput, "max-output",
		"truncate results longer than `SIZE`, such as 64KiB (at least 1KiB, or unlimited); \"caisson explain --output\" prints them in full (default: "+uncut+")")
}

// leastOutput is the least size to which a result is cut: the mark that says how to read on
// takes a few hundred bytes of it.
const leastOutput = 1 << 10

// sizeFlag is a size of at least [leastOutput], or unlimited.
type sizeFlag struct {
	bytes     int64
	unlimited bool
}

func (s *sizeFlag) String() string { return "" }
func (s *sizeFlag) Type() string   { return "size" }

// Set reads a size.
func (s *sizeFlag) Set(text string) error {
	if *s = (sizeFlag{}); text == "unlimited" {
		s.unlimited = true
		return nil
	}
	size, err := manifests.ParseBytes(text)
	switch {
	case err != nil:
		return errors.New("want a size such as 64KiB, or unlimited")
	case size < leastOutput:
		return errors.New("want 1KiB or more, of which the mark that says how to read on takes its part, or unlimited")
	}
	s.bytes = int64(size)
	return nil
}

// callFlag collects --allow-call flags.
type callFlag []manifests.CallGrant

func (f *callFlag) String() string { return "" }
func (f *callFlag) Type() string   { return "name" }

// Set adds one grant: NAME.
func (f *callFlag) Set(text string) error {
	grant, err := parseCall(text)
	if err == nil && !slices.Contains(*f, grant) {
		*f = append(*f, grant)
	}
	return err
}

// askFlag collects --ask flags.
type askFlag []manifests.PolicyAsk

func (f *askFlag) String() string { return "" }
func (f *askFlag) Type() string   { return "glob" }

// Set adds one: GLOB.
func (f *askFlag) Set(text string) error {
	ask, err := parseAsk(text)
	if err == nil {
		*f = append(*f, ask)
	}
	return err
}

// approveFlag collects --approve-tool flags.
type approveFlag []manifests.PolicyApproval

func (f *approveFlag) String() string { return "" }
func (f *approveFlag) Type() string   { return "name" }

// Set adds one: NAME.
func (f *approveFlag) Set(text string) error {
	approval, err := parseApproval(text)
	if err == nil {
		*f = append(*f, approval)
	}
	return err
}

// executorOptions says how the calls of one command are run. Hint says where the rest of a
// result is that was cut.
func (o *options) executorOptions(hint func(tool.Cut) string) (executor.Options, error) {
	if o.noRepair && o.tolerantJSON {
		return executor.Options{}, failed(exitUsage, "--no-repair and --tolerant-json exclude each other")
	}
	unlimited := executor.Rate{Unlimited: true}
	options := executor.Options{
		Parallel: o.parallel, NoRepair: o.noRepair, TolerantJSON: o.tolerantJSON,
		Reuse: executor.Reuse{TTL: reuseFor},
		// One person's calls are all there are: nobody is to be protected from their number, and
		// none is to be left out because others before it crashed.
		Limits:  executor.Limits{Running: o.parallel, PerTenant: o.parallel, PerTool: o.parallel},
		Rates:   executor.Rates{All: unlimited, PerTenant: unlimited, PerTool: unlimited},
		Breaker: executor.Breaker{Off: true},
		Output:  o.output(hint),
	}
	if o.noReuse {
		options.Reuse = executor.Reuse{Scope: executor.ReuseNone}
	}
	return options, nil
}

// output returns how results are cut. Where a flag gives the size of one, there is no other
// bound for all of them.
func (o *options) output(hint func(tool.Cut) string) executor.Output {
	if o.maxOutput.unlimited {
		return executor.Output{Unlimited: true}
	}
	cut := executor.Output{PerCall: o.maxOutput.bytes, Kept: records.MaxBytes, Hint: hint}
	if o.maxOutput.bytes > 0 {
		cut.PerBatch = math.MaxInt64
	}
	return cut
}
