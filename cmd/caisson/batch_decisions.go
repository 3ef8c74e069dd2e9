package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

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
		return tool.Approval{}, errors.New("the call that waits under this id has another fingerprint: it is not what was looked at")
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
