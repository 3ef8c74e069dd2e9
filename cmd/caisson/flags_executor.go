package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// reuseFor is the time for which an answer of a read-only tool may be reused if its manifest does not set one.
const reuseFor = 5 * time.Minute

// executorFlags adds the flags for running calls. every is about --no-reuse, uncut about --max-output.
func (o *options) executorFlags(command *cobra.Command, every, uncut string) {
	flags := command.Flags()
	flags.BoolVar(&o.noRepair, "no-repair", false,
		"use arguments as written: do not repair what does not match the schema, and do not fill in defaults")
	flags.BoolVar(&o.tolerantJSON, "tolerant-json", false,
		"accept arguments that are almost JSON: single quotes, trailing commas, comments, True and None, code fences, "+
			"unclosed brackets")
	flags.BoolVar(&o.noReuse, "no-reuse", false,
		"run "+every+", instead of reusing the result of an identical call to a read-only tool")
	flags.Func("max-output",
		"truncate results longer than `SIZE`, such as 64KiB (at least 1KiB, or unlimited); \"caisson explain --output\" "+
			"prints them in full (default: "+uncut+")",
		parsedInto(&o.maxOutput, parseMaxOutput))
}

// runFlags adds the flags of commands that run calls. state says what they store in the state folder.
func (o *options) runFlags(command *cobra.Command, every, uncut, state string) {
	o.toolFlags(command)
	o.agentFlag(command, "make calls for the tenant `NAME`; --agent then names one of this tenant's agents")
	o.limitFlags(command)
	o.executorFlags(command, every, uncut)
	o.stateFlag(command, state)
	o.ledgerFlag(command, "keep records, agents and tokens")
	o.checkpointFlag(command, signsRecords)
	command.Flags().BoolVar(&o.recordInputs, "record-inputs", false,
		"record what the host returns to each call (at most 8 MiB), so that \"caisson replay\" can repeat the call "+
			"(default: the policy's record_inputs)")
	o.compileFlags(command)
}

// leastOutput is the minimum size of a truncated result, which has a notice of a few hundred bytes about the rest.
const leastOutput = 1 << 10

// sizeFlag is a size of at least [leastOutput], or unlimited.
type sizeFlag struct {
	bytes     int64
	unlimited bool
}

func parseMaxOutput(text string) (sizeFlag, error) {
	if text == "unlimited" {
		return sizeFlag{unlimited: true}, nil
	}
	size, err := manifests.ParseBytes(text)
	switch {
	case err != nil:
		return sizeFlag{}, errors.New("want a size such as 64KiB, or unlimited")
	case size < leastOutput:
		return sizeFlag{}, errors.New("want 1KiB or more, or unlimited")
	}
	return sizeFlag{bytes: int64(size)}, nil
}

// executorOptions returns the options for running calls. hint says where to find the rest of a truncated result.
func (o *options) executorOptions(hint func(tool.Cut) string) (executor.Options, error) {
	if o.noRepair && o.tolerantJSON {
		return executor.Options{}, failed(exitUsage, "--no-repair and --tolerant-json cannot be used together")
	}
	unlimited := executor.Rate{Unlimited: true}
	options := executor.Options{
		Parallel: o.parallel, NoRepair: o.noRepair, TolerantJSON: o.tolerantJSON,
		Reuse: executor.Reuse{TTL: reuseFor},
		// All calls are one person's. No other tenant needs protection from their number, and no call
		// should be skipped because earlier ones crashed.
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

// output returns how results are truncated. If a flag sets the size of each, their total is not limited.
func (o *options) output(hint func(tool.Cut) string) executor.Output {
	if o.maxOutput.unlimited {
		return executor.Output{Unlimited: true}
	}
	cut := executor.Output{PerCall: o.maxOutput.bytes, Kept: ledger.MaxEntryBytes, Hint: hint}
	if o.maxOutput.bytes > 0 {
		cut.PerBatch = math.MaxInt64
	}
	return cut
}

// stateFolder returns the folder for all stored state, or "" for none.
func (o *options) stateFolder() (string, error) {
	if o.stateDir != nil {
		return *o.stateDir, nil
	}
	return ledger.StateDir(goruntime.GOOS, os.Getenv)
}

// keeping returns where and how records are kept.
func (o *options) keeping() caisson.Records {
	kept := caisson.Records{
		Database: o.ledgerURL, KeepFor: o.keepFor, KeepCalls: int64(o.keepRecords), Relaxed: o.relaxed,
		CheckpointKey: o.checkpoints.key,
	}
	if o.stateKeys != nil {
		kept.RunKeys = o.stateKeys
	}
	return kept
}

// storedIn returns where agents or tokens are stored: in the ledger of a state folder, or in a database. A server gets
// both, since it imports what an earlier version has stored in files; other commands leave these alone.
func (o *options) storedIn(kind ledger.Kind) (state, url string, err error) {
	if o.ledgerURL != "" && !o.imports {
		return "", o.ledgerURL, nil
	}
	state, err = o.stateFolder()
	if o.ledgerURL != "" {
		return state, o.ledgerURL, nil // without a state folder, there is nothing to import
	}
	if err == nil && state == "" {
		err = fmt.Errorf("there is no state folder, in which %s are stored", kind)
	}
	if err != nil {
		err = failed(exitUsage, err.Error(), "name one with --state-dir DIR, or a database with --ledger URL")
	}
	return state, "", err
}

// storeProblem returns the error of a store of agents or tokens.
func (o *options) storeProblem(err error) error {
	switch {
	case errors.Is(err, ledger.ErrFull):
		return failed(exitFailed, err.Error(), "make room on the disk")
	case o.ledgerURL != "":
		return failed(exitFailed, err.Error(), "give the URL of a PostgreSQL database with --ledger URL")
	}
	return failed(exitFailed, err.Error(), "name another folder with --state-dir DIR")
}

// ledgerNames are the flags that say where agents and tokens are stored.
var ledgerNames = []string{"state-dir", "ledger"}

// batches returns the folder of paused batches, or "" for none.
func (o *options) batches() (batches.Folder, error) {
	dir, err := o.stateFolder()
	if dir == "" || err != nil {
		return "", err
	}
	return batches.In(dir), nil
}

// keptHelp is part of the help of commands that run calls.
const keptHelp = `Caisson stores the arguments and full results of calls for "caisson explain", in a state
folder that only the current user can read, or in the database of --ledger. --state-dir
chooses another folder; with --state-dir "", nothing is stored unless --ledger is given.`

// stateFlag adds the flag for the state folder. use says what the command does in it.
func (o *options) stateFlag(command *cobra.Command, use string) {
	command.Flags().Func("state-dir", use+" (default: in the user's state folder)", pointedTo(&o.stateDir))
}

// apartHint says how to keep tools away from stored data.
const apartHint = "choose folders that no tool may write to: with --state-dir DIR or --cache-dir DIR, and with " +
	"--state FILE and --state-key FILE if they were given"
