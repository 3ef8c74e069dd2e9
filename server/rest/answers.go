package rest

import (
	"maps"
	"net/http"
	"slices"

	"github.com/caisson-run/caisson/tool"
)

// answers are the outputs and approvals that were submitted for the actions of a paused run, until each action has one.
// The zero value has none.
type answers struct {
	outputs   []tool.Answer
	approvals []tool.Approval
	given     map[string]bool // by call id
}

// copied returns answers to which others can be added.
func (a *answers) copied() answers {
	return answers{slices.Clip(a.outputs), slices.Clip(a.approvals), maps.Clone(a.given)}
}

// missing returns the actions without an answer.
func (a *answers) missing(pending []tool.Action) []tool.Action {
	missing := []tool.Action{}
	for _, action := range pending {
		if !a.given[action.CallID] {
			missing = append(missing, action)
		}
	}
	return missing
}

// add adds answers, or none of them if something is wrong with one. The executor checks them again.
func (a *answers) add(pending []tool.Action, outputs []tool.Answer, approvals []tool.Approval) error {
	byID, ambiguous := index(pending)
	given := map[string]bool{}
	find := func(id string, wanted tool.ActionType) (*tool.Action, error) {
		action := byID[id]
		switch {
		case ambiguous[id]:
			return nil, refuse(http.StatusUnprocessableEntity, "%q is the id of several calls that wait; use their call_id",
				tool.Shown(id, 64))
		case action == nil:
			return nil, refuse(http.StatusUnprocessableEntity, "no call that waits has the id %q", tool.Shown(id, 64))
		case action.Type != wanted:
			return nil,
				refuse(http.StatusUnprocessableEntity, "%s waits for another kind of answer: %s", action.CallID, action.Type)
		case a.given[action.CallID] || given[action.CallID]:
			return nil, refuse(http.StatusConflict, "%s has been answered", action.CallID)
		}
		given[action.CallID] = true
		return action, nil
	}
	for i := range outputs {
		action, err := find(outputs[i].CallID, tool.NeedsOutput)
		if err != nil {
			return err
		}
		outputs[i].CallID = action.CallID
	}
	for i := range approvals {
		action, err := find(approvals[i].CallID, tool.NeedsApproval)
		if err != nil {
			return err
		}
		if approvals[i].Approve && approvals[i].Fingerprint != action.Fingerprint {
			return refuse(http.StatusUnprocessableEntity,
				"%s: the fingerprint is missing, or not that of what waits; show the call again", action.CallID)
		}
		approvals[i].CallID = action.CallID
	}
	if a.given == nil {
		a.given = map[string]bool{}
	}
	for id := range given {
		a.given[id] = true
	}
	a.outputs, a.approvals = append(a.outputs, outputs...), append(a.approvals, approvals...)
	return nil
}

// index finds actions by our id of the call, and by the provider's if no other action has it.
func index(pending []tool.Action) (byID map[string]*tool.Action, ambiguous map[string]bool) {
	byID, ambiguous = map[string]*tool.Action{}, map[string]bool{}
	for i := range pending {
		id := pending[i].Call.ID
		ambiguous[id] = byID[id] != nil
		byID[id] = &pending[i]
	}
	for i := range pending {
		byID[pending[i].CallID] = &pending[i]
		delete(ambiguous, pending[i].CallID)
	}
	return byID, ambiguous
}
