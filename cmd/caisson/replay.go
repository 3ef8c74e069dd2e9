package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

const replayHelp = `Run a call again with the answers that the host gave it, and compare its result and its fuel
bit for bit. The replay opens no network connection and no mounted directory, reads no clock
and no random bytes, runs no other tool, and leaves no record.

The call must have been recorded with --record-inputs, or with record_inputs in the policy.
Its tool must have the same module and the same manifest. The tool is loaded from the
manifest in the record, or from the folder or manifest that --tools names. No flag or policy
of the call is needed.

CALL-ID is the call_id of a record. A unique prefix of at least 8 characters is enough;
calls of the same minute can share 8 characters. docs/records.md says what is recorded, and
what cannot be replayed.

The exit code is 1 if the replay differs, and 2 if the call cannot be replayed.`

const replayExample = `  caisson call fetch_page '{"url": "https://example.com"}' --config caisson.yaml --record-inputs
  caisson replay 0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47
  caisson replay 0199f3c2-5d1e --tools ./wasm-tools/web --json`

func newReplay(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "replay CALL-ID", Short: "run a recorded call again, and compare", Long: replayHelp, Example: replayExample,
		Args: positional(1, 1, "a CALL-ID"),
		RunE: func(command *cobra.Command, args []string) error { return o.replay(command.Context(), args[0]) },
	}
	o.command = command
	command.Flags().StringArrayVar(&o.tools, "tools", nil,
		"load the tool from a folder or manifest `SOURCE`; repeatable (default: the manifest in the record)")
	o.ledgerFlags(command, signsInterrupted)
	o.compileFlags(command)
	o.outputFlags(command, "print one JSON object: what differs")
	return command
}

// replayed is the outcome of a replay.
type replayed struct {
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	Equal  bool   `json:"equal"`
	Steps  int    `json:"steps"` // of the record
	Fuel   *int64 `json:"fuel"`  // of the record
	// Divergence is the first step of the guest that differs; empty if all are the same.
	Divergence  string              `json:"divergence,omitempty"`
	Differences []replay.Difference `json:"differences"`
}

func (o *options) replay(ctx context.Context, id string) error {
	var entry ledger.Entry
	err := o.withLedger(ctx, func(kept *ledger.Ledger) (err error) {
		entry, err = find(ctx, kept, id)
		return err
	})
	if err != nil {
		return err
	}
	if entry.Inputs == nil {
		return o.notRecorded(entry)
	}
	in, _, err := replay.Decode(entry.Inputs)
	if err != nil {
		return notReplayed(entry, err)
	}
	if len(o.tools) == 0 {
		o.only = entry.Manifest
	}
	outcome, err := o.runAgain(ctx, entry)
	of := replayed{CallID: entry.Record.CallID, Tool: entry.Record.Function.Name, Steps: in.Steps,
		Fuel: entry.Record.Usage.Fuel, Differences: []replay.Difference{}}
	if differs, ok := errors.AsType[*replay.Divergence](err); ok {
		of.Divergence = differs.Error()
	} else if err != nil {
		return notReplayed(entry, err)
	} else {
		of.Differences = append(of.Differences,
			replay.Compare(entry.Result(), outcome.Result, entry.Record.Usage.Fuel, outcome.Usage.Fuel)...)
	}
	of.Equal = of.Divergence == "" && len(of.Differences) == 0
	if err := o.show(of, of.text()); err != nil || of.Equal {
		return err
	}
	return failed(exitFailed, "the replay of "+of.CallID+" differs from its record",
		terminal.ToRun("caisson records verify")+" to see whether the record was changed")
}

// runAgain loads the tool of a call and replays the call.
func (o *options) runAgain(ctx context.Context, entry ledger.Entry) (outcome tool.Outcome, err error) {
	h, err := o.open(ctx, openMode{starts: true})
	if err != nil {
		return outcome, err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	found, known := h.registry.Get(entry.Record.Function.Name)
	if !known {
		return outcome, replay.Refuse("there is no tool %s in %s", terminal.Quote(entry.Record.Function.Name),
			strings.Join(h.sources, ", "))
	}
	t, ok := found.Tool.(*runtime.Tool)
	if !ok {
		return outcome, replay.Refuse("%s is not run by this program", found.Name)
	}
	return t.Invoke(ctx, tool.Invocation{CallID: entry.Record.CallID, Tool: found.Name, Replay: entry.Inputs})
}

// notReplayed returns the error for a call that cannot be replayed, or whose replay failed.
func notReplayed(entry ledger.Entry, err error) error {
	if refused, ok := errors.AsType[*replay.Refusal](err); ok {
		return failed(exitUsage, fmt.Sprintf("the call %s cannot be replayed: %s", entry.Record.CallID, refused.Error()),
			"name the folder or manifest of the tool as it was with --tools SOURCE, if only that has changed")
	}
	if failure, ok := errors.AsType[*tool.Error](err); ok {
		code, _ := exitCode(failure.Kind)
		return failed(cmp.Or(code, exitFailed), "the replay failed: "+failure.Message)
	}
	return err
}

// notRecorded returns the error for a call without inputs.
func (o *options) notRecorded(entry ledger.Entry) error {
	record := entry.Record
	reason, hint := "its inputs were not recorded", "record calls with --record-inputs, or record_inputs in the policy"
	switch {
	case record.Cached:
		reason = "it did not run: its result was in the cache"
	case record.Skipped:
		reason = "it did not run: " + cmp.Or(record.Result.Error, "it repeats another call")
	case entry.Manifest == "":
		reason, hint = "its tool has no manifest in a file: a client or the embedding program ran it", ""
	case record.Usage.Fuel == nil && !record.Result.Success:
		reason = "its guest did not run: " + cmp.Or(record.Result.Error, string(record.Result.Kind))
	case record.Usage.Fuel == nil:
		reason, hint = "a client ran it", ""
	}
	text := fmt.Sprintf("the call %s cannot be replayed: %s", record.CallID, reason)
	if hint == "" {
		return failed(exitUsage, text)
	}
	return failed(exitUsage, text, hint)
}

// text returns the outcome for people.
func (r replayed) text() string {
	fuel, _ := json.Marshal(r.Fuel)
	if r.Equal {
		return fmt.Sprintf("%s (%s): result and fuel (%s) are equal, after %s\n", r.CallID, r.Tool, fuel,
			terminal.Count(r.Steps, "step"))
	}
	if r.Divergence != "" {
		return r.Divergence + "\n"
	}
	var text strings.Builder
	for _, d := range r.Differences {
		at := differsAt(d.Recorded, d.Replayed)
		fmt.Fprintf(&text, "%s: the record has %s, the replay has %s", d.Part, shownFrom(d.Recorded, at),
			shownFrom(d.Replayed, at))
		if at > 0 {
			fmt.Fprintf(&text, ", from byte %d on", at)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// maxShownPart is the number of columns that are shown of a part of a result that differs.
const maxShownPart = 60

// differsAt returns the offset of the first character that differs in long texts, and 0 in short ones.
func differsAt(a, b string) int {
	if max(len(a), len(b)) <= maxShownPart {
		return 0
	}
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	for at > 0 && (at < len(a) && !utf8.RuneStart(a[at]) || at < len(b) && !utf8.RuneStart(b[at])) {
		at--
	}
	return at
}

func shownFrom(text string, at int) string {
	if text == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", terminal.Clip(text[at:], maxShownPart))
}
