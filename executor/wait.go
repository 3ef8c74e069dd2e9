package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// show sets the fingerprint and the callees in the call's action, so that an approver sees what an approval covers.
func (w *need) show(c *call) {
	id := c.record.CallID
	w.action.Fingerprint, w.action.Callees = w.effect.fingerprint(id, w.before), w.effect.shown()
}

func (c *call) isClient() bool { return c.wait != nil && c.wait.action.Type == tool.NeedsOutput }

// planWait sets the output or approval that the call needs, if any.
func (c *call) planWait(ctx context.Context) error {
	client := c.entry.Manifest.Execution == manifests.ExecutionClient
	reason := ""
	if !client && !c.submitted { // the tool of a submitted call that is not the client's was replaced, and is not run
		reason = c.entry.Asks()
	}
	if !client && reason == "" {
		return nil
	}
	// The host's values are not shown.
	text, err := c.invocation.Arguments.Without(c.entry.Manifest.Context...).MarshalJSON()
	if err != nil {
		return err
	}
	action := tool.Action{CallID: c.record.CallID, Call: c.record.Call, Tool: c.tool, Arguments: text,
		Hints: c.entry.Hints()}
	action.Call.ID = cmp.Or(action.Call.ID, c.record.CallID)
	if client {
		action.Type, action.Reason = tool.NeedsOutput, "the client runs "+c.tool
		c.wait, c.phase = &need{action: action}, phaseWaiting
		return nil
	}
	action.Type, action.Reason, action.Decisions = tool.NeedsApproval, storable(reason), decisionsOf(c.entry)
	w := &need{action: action}
	if c.parent == nil {
		w.before = c.batch.order.digest()
	}
	if w.effect, err = c.batch.effect(ctx, c, c.entry); err != nil {
		c.refuseUnknown(ctx, err)
		return nil
	}
	w.show(c)
	w.approved = c.batch.session.approved.Take(c.record.CallID, w.action.Fingerprint)
	c.wait = w
	if !c.isApproved() {
		c.phase = phaseWaiting
	}
	return nil
}

// isApproved reports whether the effect of the call has been approved, and the approval has not expired.
func (c *call) isApproved() bool {
	return c.wait.approved.Holds(c.wait.action.Fingerprint) || c.batch.session.approved.Holds(c.wait.effect.digest)
}

// decisionsOf returns a tool's permissions in the form that a state can hold.
func decisionsOf(entry registry.Entry) []tool.Decision {
	decisions := slices.Clone(entry.Decisions())
	for i := range decisions {
		d := &decisions[i]
		for _, text := range []*string{&d.Permission, &d.Requested, &d.Granted, &d.Effective, &d.Reason} {
			*text = storable(*text)
		}
		d.Allow = storableAllow(d.Allow)
	}
	return decisions
}

// storable returns a text that survives storage as JSON unchanged: the action that an approver saw is compared with
// that of the call that would run.
func storable(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// storableAllow is storable for rules, which tools written in Go may make in any form. It drops those that are no JSON.
func storableAllow(allow tool.Allow) tool.Allow {
	for _, rule := range []*json.RawMessage{&allow.Manifest, &allow.Grant} {
		if *rule == nil {
			continue
		}
		stored, err := json.Marshal(json.RawMessage(storable(string(*rule))))
		if *rule = stored; err != nil || string(stored) == "null" {
			*rule = nil
		}
	}
	return allow
}

// refuseUnknown refuses a call whose effect cannot be determined.
func (c *call) refuseUnknown(ctx context.Context, err error) {
	if c.isTooLate(ctx) {
		return
	}
	c.refuseFailed(fmt.Errorf("cannot determine what an approval of the call covers: %w", err))
}

// announce reports what a call waits for, once.
func (b *batch) announce(ctx context.Context, c *call) {
	if c.phase == phaseAnnounced {
		return
	}
	c.phase = phaseAnnounced
	b.executor.log.InfoContext(ctx, "call waiting", "call_id", c.record.CallID, "tool", c.tool, "for",
		string(c.wait.action.Type))
	b.send(tool.CallWaiting, func(event *tool.Event) {
		c.describe(event)
		action := c.wait.action
		event.Action = &action
	})
}

// clear checks the approval of the next call just before it runs: the calls before it may have taken long, and
// may have changed its effect. If the effect differs from the approved one, or the approval has expired,
// the call waits again, and clear returns false. It returns true for a refused call, which still has to end.
func (b *batch) clear(ctx context.Context, c *call) bool {
	if c.phase == phaseRefused || c.isCancelled() || ctx.Err() != nil {
		return true
	}
	entry, ok, err := lookUp(b.executor.resolver, c.invocation.Tool)
	if err != nil {
		c.refuseFailed(err)
		return true
	}
	if !ok {
		entry = c.entry // running it reports that it is gone
	}
	if c.wait == nil {
		if reason := entry.Asks(); reason != "" {
			c.refuse(tool.Busy, fmt.Sprintf("calls of %s now require approval (%s); call it again", c.tool, storable(reason)))
		}
		return true
	}
	w := c.wait
	if w.effect, err = b.effect(ctx, c, entry); err != nil {
		c.refuseUnknown(ctx, err)
		return true
	}
	w.show(c)
	if c.isApproved() {
		return true
	}
	w.action.Decisions = decisionsOf(entry)
	w.approved = pause.Permit{}
	b.announce(ctx, c)
	return false
}

// abandonWait invalidates the cache for a waiting call that is given up: the client may have begun to run it.
func (b *batch) abandonWait(c *call) {
	if c.isClient() && c.phase == phaseAnnounced && !c.readOnly {
		b.barrier(c)()
	}
}

// keepApprovals leaves the approvals of calls that have not run with the session. They must not be in the
// batch's state: write access to the store of states would then be enough to approve anything. The first call comes
// last, since a full session evicts the oldest.
func (b *batch) keepApprovals(calls []*call) {
	for _, c := range slices.Backward(calls) {
		if c.phase == phaseEnded || c.wait == nil || c.wait.approved == (pause.Permit{}) || !c.wait.approved.Until.IsZero() {
			continue // the session has approvals for a time already
		}
		b.session.approved.Keep(tool.Approval{CallID: c.record.CallID, Approve: true,
			Fingerprint: c.wait.approved.Fingerprint, Scope: tool.ApproveOnce})
	}
}
