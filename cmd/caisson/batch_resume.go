package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/batches"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// resume resumes a paused batch.
func (o *batchOptions) resume(ctx context.Context, env environment, outputs []string) (err error) {
	place, batch, err := o.waitingBatch()
	if err != nil {
		return err
	}
	dialect, err := dialectNamed(batch.Dialect)
	if err != nil {
		return failed(exitUsage, err.Error())
	}
	pending := batch.State.Pending()
	answers, err := o.answers(ctx, env, outputs, dialect, pending)
	if err != nil {
		return err
	}
	h, err := o.host(ctx, env, place)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, h.close(ctx)) }()
	if err := h.hasToolsOf(pending); err != nil {
		return err
	}
	if err := h.keepsFromTools(keptBatch, place.Dirs()); err != nil {
		return err
	}
	r, err := h.runner(env)
	if err != nil {
		return err
	}
	defer r.close()
	view := o.view(env, dialect)
	ended, err := r.resume(ctx, executor.Resumption{
		State: batch.State, Outputs: answers.Outputs, Approvals: answers.Approvals,
		Timeout: time.Duration(o.batchTimeout), Parallel: o.parallel,
	}, view)
	if err != nil && ctx.Err() == nil {
		return notResumed(batch.State, err)
	}
	if err != nil {
		return err
	}
	o.settle(env, place, pending, ended)
	return o.tell(ctx, h, view, ended, func() (*batches.Place, error) { return place, nil })
}

// settle keeps no more of a batch that has ended than that it has, and says of what waits again why
// it does.
func (o *batchOptions) settle(env environment, place *batches.Place, pending []tool.Action, ended done) {
	hints := changedHints(pending, ended.Pending)
	if ended.Status != executor.RequiresAction {
		if err := place.End(ended.ID, time.Now()); err != nil {
			hints = append(hints, "what is kept of the batch could not be removed: "+err.Error())
		}
	}
	if o.quiet {
		return
	}
	for _, hint := range hints {
		printHint(env.stderr, hint)
	}
}

// hasToolsOf refuses to resume without a tool whose call is waiting: the call would be refused for good.
func (h *host) hasToolsOf(pending []tool.Action) error {
	for _, action := range pending {
		if _, ok := h.registry.Get(action.Call.Function.Name); !ok {
			return failed(exitUsage, fmt.Sprintf("a call of %s waits, and no such tool is loaded", action.Call.Function.Name),
				"give --tools and --config as the batch began", h.whereTools())
		}
	}
	return nil
}

// changedHints names the calls that wait again although they were approved: what they would do was
// looked at before, and is something else.
func changedHints(before, after []tool.Action) []string {
	looked := make(map[string]tool.Action, len(before))
	for _, action := range before {
		if action.Type == tool.NeedsApproval {
			looked[action.CallID] = action
		}
	}
	var hints []string
	for _, action := range after {
		was, ok := looked[action.CallID]
		if !ok || was.Fingerprint == action.Fingerprint {
			continue
		}
		changed := "its tool, arguments or permissions are not those that were looked at"
		at := slices.IndexFunc(action.Callees, func(c tool.Callee) bool { return !slices.Contains(was.Callees, c) })
		switch {
		case at >= 0:
			changed = fmt.Sprintf("%s, which it may call, is not the tool that it was when the call was looked at", action.Callees[at].Tool)
		case len(was.Callees) != len(action.Callees):
			changed = "the tools that it may call are not those that were looked at"
		}
		hints = append(hints, fmt.Sprintf("%s (%s) waits again: %s", action.Tool, action.Call.ID, changed))
	}
	return hints[:min(len(hints), shownPending)]
}

// waitingBatch returns the batch that --resume names.
func (o *batchOptions) waitingBatch() (*batches.Place, batches.Batch, error) {
	place, err := o.kept()
	if err != nil {
		return nil, batches.Batch{}, unknownBatch(err)
	}
	batch, err := place.Read()
	if err != nil {
		return nil, batches.Batch{}, unknownBatch(err)
	}
	return place, batch, nil
}

// unknownBatch says what to do where there is no batch to resume.
func unknownBatch(err error) *failure {
	hint := fmt.Sprintf("name a paused batch by its id (the first %d characters are enough) or its file; the command that ran it printed both", batches.MinPrefix)
	switch {
	case errors.Is(err, batches.ErrEnded):
		hint = `nothing is left to do; "caisson explain" shows what its calls came to`
	case errors.Is(err, batches.ErrAmbiguous):
		hint = "write more of the id"
	}
	return failed(exitUsage, err.Error(), hint)
}

// answers returns all that is handed in for what the batch waits for. Outputs may be in any dialect,
// unless the flag names one.
func (o *batchOptions) answers(ctx context.Context, env environment, outputs []string, dialect dialects.Dialect, pending []tool.Action) (dialects.Answers, error) {
	var answers dialects.Answers
	if len(outputs) > 0 {
		document, err := env.readInput(ctx, outputs[0])
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
	}
	answers = answers.For(pending)
	approvals, err := o.decisions(pending)
	answers.Approvals = append(answers.Approvals, approvals...)
	return answers, err
}

// notResumed words why a batch was not gone on with, and says what would do.
func notResumed(state executor.State, err error) *failure {
	var known *executor.Error
	if errors.As(err, &known) {
		err = known.Err // that it was the executor's resuming goes without saying
	}
	all := &failure{exitUsage, messagesOf(err)}
	return all.causedBy(resumeHints(state, err))
}

func resumeHints(state executor.State, err error) []string {
	if errors.Is(err, executor.ErrAlreadyResumed) || errors.Is(err, executor.ErrExpired) {
		return lateHints(state.Pending())
	}
	var hints []string
	if errors.Is(err, executor.ErrWrongSession) {
		hints = append(hints, "give --context and --config as the batch began: its context values must be the same")
	}
	if errors.Is(err, executor.ErrNotApproved) {
		hints = append(hints, "an approval has the fingerprint of what was looked at, as it was printed with the call")
	}
	for _, mistake := range []error{executor.ErrMissingAnswer, executor.ErrUnknownCall, executor.ErrDoubledAnswer, executor.ErrWrongAnswer} {
		if errors.Is(err, mistake) {
			return append(hints, pendingHints(state.Pending())...)
		}
	}
	return hints
}

// lateHints says how to find out what became of calls that waited, of which some may have run.
func lateHints(pending []tool.Action) []string {
	hints := []string{"what has run is not run again"}
	for _, action := range pending[:min(len(pending), shownPending)] {
		hints = append(hints, fmt.Sprintf(`"caisson explain %s" shows what %s (%s) came to, if it has run`, action.CallID, action.Tool, action.Call.ID))
	}
	return hints
}

// shownPending is how many calls are named that wait.
const shownPending = 5

const maxShownID = 64 // bytes of an id that a provider has chosen

// pendingHints says which calls wait, and how each is answered. It has no fingerprints: whoever took
// one from here would approve of what they have not looked at.
func pendingHints(pending []tool.Action) []string {
	var hints []string
	for _, action := range pending[:min(len(pending), shownPending)] {
		id := quoted(action.CallID)
		if action.Type == tool.NeedsApproval {
			hints = append(hints, fmt.Sprintf("%s (%s) waits for --approve %s@FINGERPRINT or --refuse %s, with the fingerprint that was printed with the call", action.Tool, tool.Shown(action.Call.ID, maxShownID), id, id))
			continue
		}
		hints = append(hints, fmt.Sprintf(`%s (%s) waits for {"tool_outputs": [{"tool_call_id": "%s", "output": "TEXT"}]} in OUTPUTS`, action.Tool, tool.Shown(action.Call.ID, maxShownID), action.CallID))
	}
	if more := len(pending) - len(hints); more > 0 {
		hints = append(hints, count(more, "more call")+" as well")
	}
	return hints
}

// leastFingerprint is how many hex digits of a fingerprint --approve takes at least, and the hint
// prints. Fingerprints can be computed by whoever knows what they are of, and arguments have room for
// anything, so a few digits could be had by trying. The call's id is drawn when the call is planned,
// and a state lives for a day: within it, 2^80 attempts would be needed.
const leastFingerprint = 20

// decisions returns what --approve and --refuse say about the calls that wait. Who approves names
// what was shown by its fingerprint. The batch, which is read from a file, cannot say that: who could
// have written it since is not known here, wherever it is.
func (o *batchOptions) decisions(pending []tool.Action) ([]tool.Approval, error) {
	var approvals []tool.Approval
	var wrong []message
	for _, text := range o.approve {
		approval, err := approvalOf(text, pending)
		if err != nil {
			wrong = append(wrong, message{fmt.Sprintf("--approve %s: %v", text, err), pendingHints(pending)})
			continue
		}
		approvals = append(approvals, approval)
	}
	for _, text := range o.refuse {
		action, reason, err := refusalOf(text, pending)
		if err != nil {
			wrong = append(wrong, message{fmt.Sprintf("--refuse %s: %v", text, err), pendingHints(pending)})
			continue
		}
		approvals = append(approvals, tool.Approval{CallID: action.CallID, Reason: reason})
	}
	if len(wrong) > 0 {
		return nil, &failure{exitUsage, wrong}
	}
	return approvals, nil
}

// approvalOf reads what follows --approve: CALL-ID@FINGERPRINT[=once|session|DURATION]. Providers' ids
// may hold an at sign and an equals sign themselves.
func approvalOf(text string, pending []tool.Action) (tool.Approval, error) {
	parts := regexp.MustCompile(`^(.+)@([0-9a-f]+)(?:=(.*))?$`).FindStringSubmatch(text)
	if parts == nil || len(parts[2]) < leastFingerprint {
		return tool.Approval{}, fmt.Errorf("want CALL-ID@FINGERPRINT, with at least %d digits of the fingerprint that was printed with the call: it proves what was looked at", leastFingerprint)
	}
	id, fingerprint, scope := parts[1], parts[2], parts[3]
	found := slices.DeleteFunc(slices.Clone(pending), func(a tool.Action) bool { return a.CallID != id && a.Call.ID != id })
	shown := slices.IndexFunc(found, func(a tool.Action) bool {
		return a.Type == tool.NeedsApproval && strings.HasPrefix(a.Fingerprint, fingerprint)
	})
	switch {
	case len(found) == 0:
		return tool.Approval{}, errNoCall
	case shown < 0 && found[0].Type != tool.NeedsApproval:
		return tool.Approval{}, needsOutput(found[0])
	case shown < 0:
		return tool.Approval{}, errors.New("the waiting call with this id has a different fingerprint: it is not the call that was reviewed")
	}
	approval := tool.Approval{CallID: found[shown].CallID, Approve: true, Fingerprint: found[shown].Fingerprint}
	switch scope {
	case "", string(tool.ApproveOnce):
		approval.Scope = tool.ApproveOnce
	case string(tool.ApproveSession):
		approval.Scope = tool.ApproveSession
	default:
		duration, err := manifests.ParseDuration(scope)
		if err != nil {
			return tool.Approval{}, fmt.Errorf("%q: want once, session, or a time such as 10m", scope)
		}
		approval.Scope, approval.For = tool.ApproveFor, duration
	}
	return approval, nil
}

var errNoCall = errors.New("no call waits under this id")

func needsOutput(action tool.Action) error {
	return fmt.Errorf("the call of %s waits for an output, which goes into OUTPUTS", action.Tool)
}

// refusalOf reads what follows --refuse, CALL-ID[=REASON], and finds the call. Whatever waits under
// the id is not run, so that no fingerprint is needed.
func refusalOf(text string, pending []tool.Action) (tool.Action, string, error) {
	var found []tool.Action
	rest := ""
	for _, action := range pending {
		for _, id := range []string{action.CallID, action.Call.ID} {
			behind, ok := strings.CutPrefix(text, id)
			if id == "" || !ok || behind != "" && behind[0] != '=' {
				continue
			}
			found, rest = append(found, action), strings.TrimPrefix(behind, "=")
			break
		}
	}
	switch {
	case len(found) == 0:
		return tool.Action{}, "", errNoCall
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, action := range found {
			ids[i] = action.CallID
		}
		slices.Sort(ids)
		return tool.Action{}, "", fmt.Errorf("several calls wait under this id: %s", strings.Join(ids, ", "))
	case found[0].Type != tool.NeedsApproval:
		return tool.Action{}, "", needsOutput(found[0])
	}
	return found[0], rest, nil
}
