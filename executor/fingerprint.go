package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

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
