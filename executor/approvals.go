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

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// maxApprovals is how many approvals a session keeps; the oldest go first, and are asked for again.
const maxApprovals = 1000

// newApprovals returns the approvals that a session begins with, by what they are for. They are never asked with
// Get, so that the least recent is the oldest.
func newApprovals(given []tool.Approval) (*lru.Cache[string, tool.Approval], error) {
	held, err := lru.New[string, tool.Approval](maxApprovals)
	if err != nil {
		return nil, err
	}
	for i, approval := range given {
		if approval.Scope == "" || !approval.Approve || approval.Fingerprint == "" || approval.Scope == tool.ApproveOnce && approval.CallID == "" {
			return nil, fmt.Errorf("approval %d is not one that Session.Approvals returned", i)
		}
		if err := checkScope(approval); err != nil {
			return nil, fmt.Errorf("approval %d: %w", i, err)
		}
		keepApproval(held, approval)
	}
	return held, nil
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

// keepApproval adds an approval. One for a single call is kept until that runs.
func keepApproval(held *lru.Cache[string, tool.Approval], approval tool.Approval) {
	key := approval.Fingerprint
	if approval.Scope == tool.ApproveOnce {
		key = onceKey(approval.CallID, approval.Fingerprint)
	}
	held.Add(key, fromNow(approval))
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

// onceKey is for an approval of one call alone.
func onceKey(callID, fingerprint string) string { return callID + " " + fingerprint }

// approves reports whether the session has an approval for this that has not expired.
func (s *Session) approves(key string) bool {
	held, ok := s.approved.Peek(key)
	if ok && held.Scope == tool.ApproveFor && !time.Now().Before(held.Until) {
		s.approved.Remove(key)
		return false
	}
	return ok
}

// takeApproval hands over an approval of this call alone, to one caller.
func (s *Session) takeApproval(callID, fingerprint string) permit {
	if key := onceKey(callID, fingerprint); s.approves(key) && s.approved.Remove(key) {
		return permit{fingerprint: fingerprint}
	}
	return permit{}
}

// Approvals returns the approvals that hold in the session, those that were given first before the
// others, for [SessionOptions] of a later one: of all calls that do the same, and of single calls of
// batches that have paused before these could run. Those of all calls that do the same name what these
// do in place of the fingerprint of one call. They are authority: keep them where nobody can write who
// may not approve.
func (s *Session) Approvals() []tool.Approval {
	list := []tool.Approval{}
	for _, key := range s.approved.Keys() {
		if held, ok := s.approved.Peek(key); ok && s.approves(key) {
			held.Until = held.Until.UTC().Round(0) // without the reading of this process's clock
			list = append(list, held)
		}
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
	return digestOf(appendText(nil, "caisson-approval/v3", callID, e.digest, before))
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
	o.last = digestOf(appendText(nil, "caisson-order/v1", o.last, callID))
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
	var reached []byte
	callees := map[string]string{}
	err = eachCallee(b.executor.resolver, entry, func(name string, called registry.Entry, ok bool) error {
		reached = appendText(reached, name, called.Name)
		if !ok {
			return nil
		}
		// A tool that cannot say what it is keeps nobody from calling the others, and is not called itself.
		identity, err := identityOf(ctx, called)
		if err != nil && ended(ctx) != nil {
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
	text := appendText(nil, "caisson-effect/v1", identity, entry.Name, string(reached), b.session.tenant, b.session.user)
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
	return digestOf(appendValues(appendText(nil, "caisson-session/v1", batch, s.tenant), s.context))
}

func digestOf(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
