package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// maxApprovals is how many approvals a session keeps. The oldest are evicted, and requested again when needed.
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

// checkScope checks the scope and the duration of an approval.
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

// keepApproval adds an approval without its reason, which is not needed again. One for a single call is kept until the
// call runs.
func keepApproval(held *lru.Cache[string, tool.Approval], approval tool.Approval) {
	approval.Reason = ""
	key := approval.Fingerprint
	if approval.Scope == tool.ApproveOnce {
		key = onceKey(approval.CallID, approval.Fingerprint)
	}
	held.Add(key, fromNow(approval))
}

// fromNow gives an approval that holds for a time the moment at which it expires.
func fromNow(approval tool.Approval) tool.Approval {
	if approval.Scope == tool.ApproveFor && approval.Until.IsZero() {
		approval.Until, approval.For = time.Now().Add(approval.For), 0
	}
	return approval
}

// permit is the approval of a single call. The zero value permits nothing.
type permit struct {
	fingerprint string
	until       time.Time // zero: does not expire
}

// holds reports whether the permit is for this fingerprint and has not expired.
func (p permit) holds(fingerprint string) bool {
	return p.fingerprint != "" && p.fingerprint == fingerprint && (p.until.IsZero() || time.Now().Before(p.until))
}

// onceKey is the key for the approval of a single call.
func onceKey(callID, fingerprint string) string { return callID + " " + fingerprint }

// approves reports whether the session has an approval for this that has not expired.
func (s *Session) approves(key string) bool {
	held, ok := s.approved.Peek(key)
	return ok && (held.Scope != tool.ApproveFor || time.Now().Before(held.Until))
}

// takeApproval removes the approval of a single call and returns it, to one caller only.
func (s *Session) takeApproval(callID, fingerprint string) permit {
	if key := onceKey(callID, fingerprint); s.approves(key) && s.approved.Remove(key) {
		return permit{fingerprint: fingerprint}
	}
	return permit{}
}

// Approvals returns the approvals that hold in the session, oldest first, for the [SessionOptions] of a later
// session. They are approvals of all calls with the same effect, whose fingerprint is that effect, and
// approvals of single calls in batches that paused before these could run. They are authority: store them
// where only those who may approve can write.
func (s *Session) Approvals() []tool.Approval {
	list := []tool.Approval{}
	for _, key := range s.approved.Keys() {
		if held, ok := s.approved.Peek(key); ok && s.approves(key) {
			held.Until = held.Until.UTC().Round(0) // without this process's monotonic clock
			list = append(list, held)
		}
	}
	return list
}

// effect is what a call would do. Approvals are bound to it.
type effect struct {
	// digest covers what the tool and those that it may call can do, on whose behalf, with which
	// context values, files, parts of the caller's request and complete arguments. It is 64 hex
	// digits, and equal for calls with the same effect.
	digest string
	// callees are the identities of the tools that the tool may call, and of those that these may, by
	// registered name.
	callees map[string]string
}

// fingerprint is what the approval of one call names. It covers the call's id, so that an approval holds for no
// other call, even one with the same effect, and the digest of the calls before it, since its effect may
// depend on theirs. It is 64 hex digits.
func (e effect) fingerprint(callID, before string) string {
	return digestOf(appendText(nil, "caisson-approval/v3", callID, e.digest, before))
}

// order is the order of the calls that a model made, as a chain of digests: each covers its call's id and the
// digest before, so that it identifies all calls up to its own in constant space. Few batches need it, so the digests
// are made when the first is asked for. The zero value has no calls. It is safe for concurrent use.
type order struct {
	mu     sync.Mutex
	calls  []string // ids whose digests have not been made
	last   string
	before map[string]string // by call id
}

func (o *order) add(callID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, callID)
}

// digestBefore returns the digest of the calls before one; "" for the first call and for nested ones.
func (o *order) digestBefore(callID string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.before == nil {
		o.before = map[string]string{}
	}
	for _, id := range o.calls {
		o.before[id] = o.last
		o.last = digestOf(appendText(nil, "caisson-order/v1", o.last, id))
	}
	o.calls = nil
	return o.before[callID]
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
		// A tool that cannot state its identity does not block calls of the others, and is not called itself.
		identity, err := identityOf(ctx, called)
		if err != nil && ended(ctx) != nil {
			return err
		}
		if err != nil {
			identity = ""
		}
		reached = b.requests[called.Name].append(appendText(reached, identity))
		callees[called.Name] = identity
		return nil
	})
	if err != nil {
		return effect{}, err
	}
	text := appendText(nil, "caisson-effect/v2", identity, entry.Name, string(reached), b.session.tenant, b.session.user)
	text = appendValues(text, b.session.context)
	text = appendFiles(text, b.files)
	text = b.requests[entry.Name].append(text)
	text = c.invocation.Arguments.AppendCanonical(text)
	return effect{digestOf(text), callees}, nil
}

// checkApprovedCallees refuses a nested call if the called tool was replaced since a call above it was approved:
// tools can be replaced between the check of an approval and the calls that the approved tool makes.
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

// digest identifies the session in a state. It covers the batch's id, so that the digests of two batches cannot
// be linked.
func (s *Session) digest(batch string) string {
	return digestOf(appendValues(appendText(nil, "caisson-session/v1", batch, s.tenant), s.context))
}

func digestOf(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
