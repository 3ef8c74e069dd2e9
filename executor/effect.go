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

// effect identifies what a call would do. Approvals are bound to it.
type effect struct {
	// digest covers what the tool and those that it may call can do, on whose behalf, with which
	// context values, files, parts of the caller's request and complete arguments. It is 64 hex
	// digits, and equal for calls with the same effect.
	digest string
	// callees are the identities of the tools that the tool may call, and of those that these may, by
	// registered name.
	callees map[string]string
}

// fingerprint returns what an approval of a call contains. It covers the call's id, so that the approval applies to no
// other call, and the digest of the calls before it, on which the effect may depend. It is 64 hex digits.
func (e effect) fingerprint(callID, before string) string {
	return digestOf(appendText(nil, "caisson-approval/v3", callID, e.digest, before))
}

// callOrder is the order of the calls that a model made, as a chain of digests: each covers its call's id and the
// digest before, so that it identifies all calls up to its own in constant space. Few batches need it, so the digests
// are made when one is asked for. The zero value has no calls.
type callOrder struct {
	calls []string // ids whose digests have not been made
	last  string
}

func (o *callOrder) add(callID string) { o.calls = append(o.calls, callID) }

// digest returns the digest of the calls so far; "" if there are none.
func (o *callOrder) digest() string {
	for _, id := range o.calls {
		o.last = digestOf(appendText(nil, "caisson-order/v1", o.last, id))
	}
	o.calls = nil
	return o.last
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
		// A callee that cannot state its identity does not block the call, but cannot be called itself.
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

// checkApprovedCallees refuses a nested call if the called tool was replaced since a call above it was approved.
func (c *call) checkApprovedCallees(ctx context.Context) {
	for caller := c.parent; caller != nil; caller = caller.parent {
		if caller.wait == nil || caller.wait.effect.callees == nil {
			continue
		}
		approved := caller.wait.effect.callees[c.tool]
		if identity, err := identityOf(ctx, c.entry); err == nil && identity == approved {
			continue
		}
		c.deny("approval", fmt.Sprintf("%s was replaced after the call of %s that leads to it was approved", c.tool,
			caller.tool), tool.Allow{})
		return
	}
}

func digestOf(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
