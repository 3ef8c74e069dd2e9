package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/agefile"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/tool"
)

func (o *batchOptions) resume(ctx context.Context, outputs []string) (err error) {
	place, batch, err := o.waitingBatch()
	if err != nil {
		return err
	}
	dialect, err := dialectNamed(batch.Dialect)
	if err != nil {
		return failed(exitUsage, err.Error())
	}
	pending := batch.State.Pending()
	answers, err := o.answers(ctx, outputs, dialect, pending)
	if err != nil {
		return err
	}
	h, err := o.open(ctx, openMode{runs: true, claims: place})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	h.noteUnsentSecrets(nil)
	if err := h.hasToolsOf(pending); err != nil {
		return err
	}
	if err := h.keepsBatchFromTools(place.Guarded()); err != nil {
		return err
	}
	if err := h.start(ctx); err != nil {
		return err
	}
	v := o.view(dialect)
	ended, err := h.resume(ctx, executor.Resumption{
		State: batch.State, Outputs: answers.Outputs, Approvals: answers.Approvals,
		Timeout: o.batchTimeout, Parallel: o.parallel,
	}, v)
	switch {
	case err != nil && ctx.Err() == nil:
		return o.notResumed(batch.State, err)
	case err != nil:
		return err
	}
	o.settle(place, pending, ended)
	return o.tell(ctx, h, v, ended, place)
}

// settle removes the state of a batch that has ended, and prints why calls need approval again.
func (o *batchOptions) settle(place *batches.Place, pending []tool.Action, ended executor.Report) {
	hints := changedHints(pending, ended.Pending)
	if ended.Status != executor.RequiresAction {
		if err := place.End(ended.ID, time.Now()); err != nil {
			hints = append(hints, "the stored batch could not be removed: "+err.Error())
		}
	}
	o.hint(hints...)
}

// hasToolsOf rejects resuming without the tool of a paused call, because the call would fail for good.
func (h *host) hasToolsOf(pending []tool.Action) error {
	for _, action := range pending {
		if _, ok := h.registry.Get(action.Call.Function.Name); !ok {
			return failed(exitUsage,
				fmt.Sprintf("a call of %s is paused, but no tool with that name is loaded", action.Call.Function.Name),
				"pass the same --tools and --config as when the batch started", h.whereTools())
		}
	}
	return nil
}

// changedHints names the approved calls that need approval again: their actions have changed since they were reviewed.
func changedHints(before, after []tool.Action) []string {
	var hints []string
	for _, action := range after {
		at := slices.IndexFunc(before,
			func(a tool.Action) bool { return a.CallID == action.CallID && a.Type == tool.NeedsApproval })
		if at < 0 || before[at].Fingerprint == action.Fingerprint {
			continue
		}
		was := before[at]
		changed := "its tool, arguments or permissions have changed since it was reviewed"
		other := slices.IndexFunc(action.Callees, func(c tool.Callee) bool { return !slices.Contains(was.Callees, c) })
		switch {
		case other >= 0:
			changed = fmt.Sprintf("%s, which it may call, has changed since it was reviewed", action.Callees[other].Tool)
		case len(was.Callees) != len(action.Callees):
			changed = "the tools that it may call have changed since it was reviewed"
		}
		hints = append(hints, fmt.Sprintf("%s (%s) needs approval again: %s", action.Tool, action.Call.ID, changed))
	}
	return hints[:min(len(hints), shownPending)]
}

func (o *batchOptions) waitingBatch() (place *batches.Place, batch batches.Batch, err error) {
	if place, err = o.kept(); err == nil {
		batch, err = place.Read()
	}
	if err != nil {
		return nil, batch, o.unknownBatch(err)
	}
	return place, batch, nil
}

func (o *options) unknownBatch(err error) *failure {
	hint := fmt.Sprintf("name a paused batch by its id (the first %d characters are enough) or its file; "+
		"the command that ran it printed both", folder.MinPrefix)
	switch {
	case errors.Is(err, batches.ErrEnded):
		hint = fmt.Sprintf("the batch has ended; %q shows the results of a call", view.ExplainCommand("CALL-ID", o.stateDir))
	case errors.Is(err, batches.ErrAmbiguous):
		hint = "give more characters of the id"
	case errors.Is(err, batches.ErrEncrypted):
		hint = "name the file with its key with --state-key FILE"
	case errors.Is(err, agefile.ErrOtherKey):
		hint = "pass the --state-key of the command that paused the batch, or add that key to the file"
	}
	return failed(exitUsage, err.Error(), hint)
}

// answers returns all answers to the pending actions. OUTPUTS may be in any dialect, unless the flag names one.
func (o *batchOptions) answers(
	ctx context.Context, outputs []string, dialect dialects.Dialect, pending []tool.Action,
) (dialects.Answers, error) {
	var answers dialects.Answers
	if len(outputs) > 0 {
		document, err := o.readInput(ctx, outputs[0])
		if err != nil {
			return answers, err
		}
		if o.dialect != "" {
			if dialect, err = dialectNamed(o.dialect); err != nil {
				return answers, err
			}
		}
		if answers, err = readAnswers(document, dialect, o.dialect != ""); err != nil {
			return answers, err
		}
		if isSubmission(document) {
			withoutQuotes(answers.Outputs, pending)
		}
	}
	answers = answers.For(pending)
	approvals, err := o.decisions(pending)
	answers.Approvals = append(answers.Approvals, approvals...)
	return answers, err
}

func (o *options) notResumed(state executor.State, err error) *failure {
	if known, ok := errors.AsType[*executor.Error](err); ok {
		err = known.Err // the executor's operation adds nothing here
	}
	all := &failure{exitUsage, messagesOf(err)}
	if errors.Is(err, executor.ErrAlreadyResumed) || errors.Is(err, executor.ErrExpired) {
		all.withHints("calls that have run are not run again")
		for _, action := range state.Pending()[:min(len(state.Pending()), shownPending)] {
			all.withHints(fmt.Sprintf("%q shows what %s (%s) came to, if it has run",
				view.ExplainCommand(action.CallID, o.stateDir), action.Tool, action.Call.ID))
		}
		return all
	}
	if errors.Is(err, executor.ErrWrongSession) {
		all.withHints("pass the same --context and --config as when the batch started: its context values must not change")
	}
	if errors.Is(err, executor.ErrNotApproved) {
		all.withHints("an approval needs the fingerprint that was printed with the call")
	}
	if errors.Is(err, executor.ErrWrongAnswers) {
		all.withHints(pendingHints(state.Pending())...)
	}
	return all
}

const shownPending = 5

const maxShownID = 64 // bytes of an id chosen by a provider

// pendingHints names the paused calls and what each needs. It prints no fingerprints: anyone who
// took one from here would approve a call without reviewing it.
func pendingHints(pending []tool.Action) []string {
	var hints []string
	for _, action := range pending[:min(len(pending), shownPending)] {
		needs := fmt.Sprintf(`{"tool_outputs": [{"tool_call_id": "%s", "output": "TEXT"}]} in OUTPUTS`, action.CallID)
		if id := terminal.Quote(action.CallID); action.Type == tool.NeedsApproval {
			needs = "--approve " + id + "@FINGERPRINT or --refuse " + id +
				", with the fingerprint that was printed with the call"
		}
		hints = append(hints, fmt.Sprintf("%s (%s) needs %s", action.Tool, tool.Shown(action.Call.ID, maxShownID), needs))
	}
	if more := len(pending) - len(hints); more > 0 {
		hints = append(hints, terminal.Count(more, "more call")+" as well")
	}
	return hints
}

// decisions returns those of --approve and --refuse. An approval has the fingerprint of what was reviewed: the batch
// file's could have been changed since, wherever it is.
func (o *batchOptions) decisions(pending []tool.Action) ([]tool.Approval, error) {
	var approvals []tool.Approval
	var wrong []message
	read := func(flag string, values []string, parse func(string, []tool.Action) (tool.Approval, error)) {
		for _, value := range values {
			approval, err := parse(value, pending)
			if text := fmt.Sprintf("%s %s: %v", flag, value, err); err != nil &&
				!slices.ContainsFunc(wrong, func(m message) bool { return m.text == text }) {
				wrong = append(wrong, message{text: text})
			}
			approvals = append(approvals, approval)
		}
	}
	read("--approve", o.approve, approvalOf)
	read("--refuse", o.refuse, refusalOf)
	if len(wrong) > 0 {
		wrong[len(wrong)-1].hints = pendingHints(pending) // of all of them
		return nil, &failure{exitUsage, wrong}
	}
	return approvals, nil
}

// approvalOf parses CALL-ID@FINGERPRINT[=once|session|DURATION]. Providers' ids may contain @ and = themselves.
func approvalOf(text string, pending []tool.Action) (tool.Approval, error) {
	var none tool.Approval
	parts := regexp.MustCompile(`^(.+)@([0-9a-f]+)(?:=(.*))?$`).FindStringSubmatch(text)
	if parts == nil || len(parts[2]) < leastFingerprint {
		return none, fmt.Errorf("want CALL-ID@FINGERPRINT, with at least %d digits of the fingerprint that was printed "+
			"with the call: it identifies what was reviewed", leastFingerprint)
	}
	id, fingerprint, scope := parts[1], parts[2], parts[3]
	found := slices.DeleteFunc(slices.Clone(pending),
		func(a tool.Action) bool { return a.CallID != id && a.Call.ID != id })
	shown := slices.IndexFunc(found, func(a tool.Action) bool {
		return a.Type == tool.NeedsApproval && strings.HasPrefix(a.Fingerprint, fingerprint)
	})
	switch {
	case len(found) == 0:
		return none, errNoCall
	case shown < 0 && found[0].Type != tool.NeedsApproval:
		return none, needsOutput(found[0])
	case shown < 0:
		return none, errors.New(
			"the paused call with this id has a different fingerprint: it is not the call that was reviewed")
	}
	approval := tool.Approval{CallID: found[shown].CallID, Approve: true, Fingerprint: found[shown].Fingerprint}
	switch approval.Scope = tool.ApprovalScope(scope); approval.Scope {
	case "":
		approval.Scope = tool.ApproveOnce
	case tool.ApproveOnce, tool.ApproveSession:
	default:
		duration, err := parseDuration(scope)
		if err != nil {
			return none, fmt.Errorf("%q: want once, session, or a duration such as 10m", scope)
		}
		approval.Scope, approval.For = tool.ApproveFor, duration
	}
	return approval, nil
}

var errNoCall = errors.New("no paused call has this id")

func needsOutput(action tool.Action) error {
	return fmt.Errorf("the call of %s needs an output in OUTPUTS", action.Tool)
}

// refusalOf parses CALL-ID[=REASON]. Providers' ids may contain = themselves: which call is meant must not depend on
// where the id ends. Caisson's own ids have none.
func refusalOf(text string, pending []tool.Action) (tool.Approval, error) {
	var found []string
	var reason string
	other := errNoCall
	for _, action := range pending {
		for _, id := range []string{action.CallID, action.Call.ID} {
			rest, ok := strings.CutPrefix(text, id)
			if id == "" || !ok || rest != "" && rest[0] != '=' {
				continue
			}
			if action.Type != tool.NeedsApproval {
				other = needsOutput(action)
				break
			}
			found, reason = append(found, action.CallID), strings.TrimPrefix(rest, "=")
			break
		}
	}
	switch len(found) {
	case 0:
		return tool.Approval{}, other
	case 1:
		return tool.Approval{CallID: found[0], Reason: reason}, nil
	}
	slices.Sort(found)
	return tool.Approval{},
		fmt.Errorf("this can mean several paused calls: %s; begin with one of these ids", strings.Join(found, ", "))
}
