package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// decisions returns what --approve and --refuse say about the calls that wait. What an approval is
// bound to is in the batch, as it was shown.
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
		action, reason, err := actionOf(text, pending)
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

// approvalOf reads what follows --approve: CALL-ID[=once|session|DURATION].
func approvalOf(text string, pending []tool.Action) (tool.Approval, error) {
	action, scope, err := actionOf(text, pending)
	if err != nil {
		return tool.Approval{}, err
	}
	approval := tool.Approval{CallID: action.CallID, Approve: true, Fingerprint: action.Fingerprint}
	switch scope {
	case "", string(tool.ApproveOnce):
		approval.Scope = tool.ApproveOnce
	case string(tool.ApproveSession):
		approval.Scope = tool.ApproveSession
	default:
		if approval.For, err = manifests.ParseDuration(scope); err != nil {
			return tool.Approval{}, fmt.Errorf("%q: want once, session, or a time such as 10m", scope)
		}
		approval.Scope = tool.ApproveFor
	}
	return approval, nil
}

// actionOf finds the call that waits for approval and is named in CALL-ID[=REST]. Providers' ids
// may hold an equals sign themselves.
func actionOf(text string, pending []tool.Action) (tool.Action, string, error) {
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
		return tool.Action{}, "", fmt.Errorf("no call waits under this id")
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, action := range found {
			ids[i] = action.CallID
		}
		slices.Sort(ids)
		return tool.Action{}, "", fmt.Errorf("several calls wait under this id: %s", strings.Join(ids, ", "))
	case found[0].Type != tool.NeedsApproval:
		return tool.Action{}, "", fmt.Errorf("the call of %s waits for an output, which goes into OUTPUTS", found[0].Tool)
	}
	return found[0], rest, nil
}
