package executor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caisson-run/caisson/tool"
)

// maxApprovals is how many approvals a session keeps; the oldest go first, and are asked for again.
const maxApprovals = 1000

// approvals are those that hold in a session, by what they are for. The session's lock guards them.
type approvals struct {
	// held is never asked with Get, so that the least recent is the oldest. Of those for a time, Until says
	// when they end.
	held *simplelru.LRU[string, tool.Approval]
}

func newApprovals(given []tool.Approval) (a approvals, err error) {
	if a.held, err = simplelru.NewLRU[string, tool.Approval](maxApprovals, nil); err != nil {
		return a, err
	}
	for i, approval := range given {
		if approval.Scope == "" || !approval.Approve || approval.Fingerprint == "" || approval.Scope == tool.ApproveOnce && approval.CallID == "" {
			return a, fmt.Errorf("approval %d is not one that Session.Approvals returned", i)
		}
		if err := checkScope(approval); err != nil {
			return a, fmt.Errorf("approval %d: %w", i, err)
		}
		a.keep(approval)
	}
	return a, nil
}

// checkScope checks for what and how long an approval holds.
func checkScope(a tool.Approval) error {
	scopes := []tool.ApprovalScope{"", tool.ApproveOnce, tool.ApproveSession, tool.ApproveFor}
	switch {
	case !slices.Contains(scopes, a.Scope):
		return fmt.Errorf("there is no scope %q; want one of %q", tool.Shown(string(a.Scope), 32), scopes[1:])
	case a.Scope == tool.ApproveFor && (a.For <= 0) == a.Until.IsZero(), a.For < 0:
		return errors.New("an approval for a time needs either For, above 0, or Until")
	case a.Scope != tool.ApproveFor && (a.For != 0 || !a.Until.IsZero()):
		return fmt.Errorf("an approval with the scope %q has no time", a.Scope)
	}
	return nil
}

// keep adds an approval. One of a call alone is kept until that runs.
func (a *approvals) keep(approval tool.Approval) {
	approval = fromNow(approval)
	key := approval.Fingerprint
	if approval.Scope == tool.ApproveOnce {
		key = onceKey(approval.CallID, approval.Fingerprint)
	}
	a.held.Remove(key)
	a.held.Add(key, approval)
}

// fromNow returns an approval that says when it ends, where it holds for a time.
func fromNow(approval tool.Approval) tool.Approval {
	if approval.Scope == tool.ApproveFor && approval.Until.IsZero() {
		approval.Until, approval.For = time.Now().Add(approval.For), 0
	}
	return approval
}

// permit is what was approved for one call alone. The zero value is nothing.
type permit struct {
	fingerprint string
	until       time.Time // the zero value: without end
}

// holds reports whether it is for this, and has not run out.
func (p permit) holds(fingerprint string) bool {
	return p.fingerprint != "" && p.fingerprint == fingerprint && (p.until.IsZero() || time.Now().Before(p.until))
}

// holds reports whether there is an approval that has not run out.
func (a *approvals) holds(key string) bool {
	held, ok := a.held.Peek(key)
	if ok && held.Scope == tool.ApproveFor && !time.Now().Before(held.Until) {
		a.held.Remove(key)
		return false
	}
	return ok
}

// onceKey is for an approval of one call alone.
func onceKey(callID, fingerprint string) string { return callID + " " + fingerprint }

// approves reports whether all calls are approved that have this effect.
func (s *Session) approves(effect string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.approved.holds(effect)
}

// takeApproval hands over an approval of this call alone.
func (s *Session) takeApproval(callID, fingerprint string) permit {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := onceKey(callID, fingerprint)
	if !s.approved.holds(key) {
		return permit{}
	}
	s.approved.held.Remove(key)
	return permit{fingerprint: fingerprint}
}

// keepOnce keeps an approval of one call, which has not run yet.
func (s *Session) keepOnce(callID, fingerprint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.approved.keep(tool.Approval{CallID: callID, Approve: true, Fingerprint: fingerprint, Scope: tool.ApproveOnce})
}

// keepApproval keeps an approval that holds for more than its call: for all that do what it does.
func (s *Session) keepApproval(approval tool.Approval, effect string) {
	if approval.Scope != tool.ApproveSession && approval.Scope != tool.ApproveFor {
		return
	}
	approval.Fingerprint = effect
	s.mu.Lock()
	defer s.mu.Unlock()
	s.approved.keep(approval)
}

// Approvals returns the approvals that hold in the session, those that were given first before the
// others, for [SessionOptions] of a later one: of all calls that do the same, and of single calls of
// batches that have paused before these could run. Those of all calls that do the same name what these
// do in place of the fingerprint of one call. They are authority: keep them where nobody can write who
// may not approve.
func (s *Session) Approvals() []tool.Approval {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []tool.Approval{}
	for _, key := range s.approved.held.Keys() {
		if !s.approved.holds(key) {
			continue
		}
		held, _ := s.approved.held.Peek(key)
		held.Until = held.Until.UTC().Round(0) // without the reading of this process's clock
		list = append(list, held)
	}
	return list
}
