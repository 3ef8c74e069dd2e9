package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caisson-run/caisson/registry"
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

// effect is what a call would do, for approvals to be bound to.
type effect struct {
	// digest covers what the tool and those that it may call can do, on whose behalf, with which
	// context values, files and complete arguments. It is 64 hex digits, and equal for calls that do
	// the same.
	digest string
	// callees are the identities of the tools that the tool may call, and of those that these may, by
	// registered name.
	callees map[string]string
}

// fingerprint is what an approval of one call names. The call's id is in it, so that what was shown
// of one call approves of no other, not even of one that does the same; so is the digest of the calls
// before it, since what it does may depend on what they did. It is 64 hex digits.
func (e effect) fingerprint(callID, before string) string {
	text := appendText(appendText(nil, "caisson-approval/v3"), callID)
	return digestOf(appendText(appendText(text, e.digest), before))
}

// order is that of the calls that a model made, as a chain of digests: each call's is of its id and
// the one before, so that it says which calls there are before the next one, and in which order. The
// zero value is of no calls. A batch may be long, and each of its calls may wait.
type order struct {
	last   string
	before map[string]string // by call id: of the calls before it; "" for the first and for others' calls
}

func (o *order) add(callID string) {
	if o.before == nil {
		o.before = map[string]string{}
	}
	o.before[callID] = o.last
	o.last = digestOf(appendText(appendText(appendText(nil, "caisson-order/v1"), o.last), callID))
}

// shown returns the tools that the tool may call, by name.
func (e effect) shown() []tool.Callee {
	var callees []tool.Callee
	for _, name := range slices.Sorted(maps.Keys(e.callees)) {
		callees = append(callees, tool.Callee{Tool: name, Digest: digestOf([]byte(e.callees[name]))})
	}
	return callees
}

// effect returns what a call of the tool would do.
func (b *batch) effect(ctx context.Context, c *call, entry registry.Entry) (effect, error) {
	identity, err := identityOf(ctx, entry)
	if err != nil {
		return effect{}, err
	}
	text := appendText(nil, "caisson-effect/v1")
	text = appendText(appendText(text, identity), entry.Name)
	var reached []byte
	callees := map[string]string{}
	err = eachCallee(b.executor.resolver, entry, func(name string, called registry.Entry, ok bool) error {
		reached = appendText(appendText(reached, name), called.Name)
		if !ok {
			return nil
		}
		// A tool that cannot say what it is keeps nobody from calling the others, and is not called itself.
		identity, err := identityOf(ctx, called)
		if err != nil && isOver(ctx) {
			return err
		}
		if err != nil {
			identity = ""
		}
		reached = appendText(reached, identity)
		callees[called.Name] = identity
		return nil
	})
	if err != nil {
		return effect{}, err
	}
	text = appendText(text, string(reached))
	text = appendText(appendText(text, b.session.tenant), b.session.user)
	text = appendValues(text, b.session.context)
	text = appendFiles(text, b.files)
	text = c.invocation.Arguments.AppendCanonical(text)
	return effect{digestOf(text), callees}, nil
}

// checkApprovedCallees refuses a tool's call where a call above it was approved while the called tool
// was another. Between the check of an approval and the calls that its tool makes, tools can be replaced.
func (c *call) checkApprovedCallees(ctx context.Context) {
	for caller := c.parent; caller != nil; caller = caller.parent {
		if caller.wait == nil || caller.wait.effect.callees == nil {
			continue
		}
		approved := caller.wait.effect.callees[c.tool]
		if identity, err := identityOf(ctx, c.entry); err == nil && identity == approved {
			continue
		}
		c.deny("approval", fmt.Sprintf("%s was replaced after the call of %s that leads to it was approved", c.tool, caller.tool), tool.Allow{})
		return
	}
}

// digest is what a state tells of the session that its batch began in. The batch's id is in it, so
// that digests of two batches tell nothing about each other.
func (s *Session) digest(batch string) string {
	text := appendText(appendText(nil, "caisson-session/v1"), batch)
	return digestOf(appendValues(appendText(text, s.tenant), s.context))
}

func digestOf(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
