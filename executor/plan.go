package executor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/executor/internal/queue"
	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/tool"
)

// suggestions is the maximum number of similar names in the answer to an unknown one.
const suggestions = 3

func (b *batch) newCall(requested tool.Call, id string) *call {
	requested.Type = cmp.Or(requested.Type, tool.FunctionCall)
	return &call{batch: b, tool: sanitizeName(requested.Function.Name), record: tool.Record{Call: requested, CallID: id}}
}

// longArguments is the size in bytes from which checking arguments takes noticeable time.
const longArguments = 16 << 10

// turnTime is the time after which a batch gives up its turn. If it did so after each call, a batch of many calls would
// wait for the other batches again before each of them.
const turnTime = 50 * time.Millisecond

// planInTurns plans the calls that have not ended. It calls planned for each call, ended ones too, in their order.
// Checking long arguments is work of the host that no limit of the tool bounds, and for nested calls the guest's
// deadline cannot stop it. So few batches do it at a time, and tenants take turns; more would only slow down each other
// and all other work.
func (b *batch) planInTurns(ctx context.Context, calls []*call, planned func(int, *call)) {
	bytes := 0
	for _, c := range calls {
		if !c.asked && c.phase != phaseEnded {
			bytes += len(c.record.Function.Arguments)
		}
	}
	var turn *queue.Place
	var began time.Time
	leave := func() {
		if turn != nil {
			turn.Leave()
			turn = nil
		}
	}
	defer leave()
	for i, c := range calls {
		if c.phase != phaseEnded {
			if turn == nil && bytes > longArguments {
				turn, _ = b.takeTurn(ctx) // on an error, plan refuses the call
				began = time.Now()
			}
			c.plan(ctx)
		}
		if turn != nil && time.Since(began) >= turnTime {
			leave()
		}
		planned(i, c)
	}
}

// plan makes the call ready to run, or completes its record with why it is not run. It does so once.
func (c *call) plan(ctx context.Context) {
	if c.asked {
		return
	}
	c.asked = true
	if c.submitted { // the client has run it, so there is no hurry
		ctx = context.WithoutCancel(ctx)
	}
	if err := c.tryPlan(ctx); err != nil {
		c.refuseFailed(err)
	}
}

// tryPlan is plan. The error is a failure of the host.
func (c *call) tryPlan(ctx context.Context) (err error) {
	defer recoverError(&err)
	found := c.find()
	if err := ctx.Err(); err != nil { // a batch may be long, and planning is work
		c.refuse(notStarted(err))
		return nil
	}
	if c.cause != nil {
		return c.cause
	}
	if c.record.Incomplete {
		c.refuse(tool.InvalidArguments,
			"the response was cut off within this call, so the call was not run; make it again, shorter if it is long")
		return nil
	}
	arguments, err := c.parse()
	if err != nil {
		c.refuse(tool.InvalidArguments, err.Error())
		return nil
	}
	if !found {
		c.refuse(tool.UnknownTool, c.unknown())
		return nil
	}
	m := c.entry.Manifest
	if m == nil || m.Parameters == nil {
		return fmt.Errorf("tool %s has no manifest or no schema that checks its arguments", c.tool)
	}
	if d := m.DeprecatedAs(c.record.Function.Name); d != nil {
		c.batch.executor.log.WarnContext(ctx, "tool is deprecated", "call_id", c.record.CallID, "tool", c.tool, "since",
			d.Since, "use", d.Use)
	}
	if !c.permitted() {
		return nil
	}
	if !c.hasContext(arguments) || c.isTooLate(ctx) {
		return nil
	}
	// This is not a repair: the manifest declares these names, for programs as well.
	arguments, renamed, err := repair.Rename(ctx, arguments, m.ParameterAliases)
	if c.isTooLate(ctx) {
		return nil
	}
	if err != nil {
		c.refuse(tool.InvalidArguments, err.Error())
		return nil
	}
	c.record.Repairs = append(c.record.Repairs, renamed...)
	repaired, integers, err := c.repair(ctx, arguments)
	if c.isTooLate(ctx) {
		return nil
	}
	if err != nil {
		return err
	}
	if repaired.Misfit != nil {
		return c.refuseMisfit(ctx, repaired.Arguments, repaired.Misfit)
	}
	arguments = c.withContext(repaired.Arguments)
	// Approvals, caches and the tool see integers in digits. This is not a repair, since the values are the same.
	plain, err := integers.InDigits()
	if plain != nil && err == nil {
		arguments, err = tool.ParseArguments(string(plain)) // they may have become too long
	}
	if err != nil {
		c.refuse(tool.InvalidArguments, err.Error())
		return nil
	}
	c.readOnly = m.Behavior.ReadOnly
	session := c.batch.session
	c.invocation = tool.Invocation{
		// The arguments are no longer parsed, which may take much memory.
		CallID: c.record.CallID, Tool: c.tool, Registration: c.entry.Registration, Arguments: arguments.Without(),
		Context: maps.Clone(session.context), Files: slices.Clone(c.batch.files), // copies, which a tool may modify
		Tenant: session.tenant, Session: session.id, User: session.user, Trace: c.batch.trace, Host: c,
	}
	if err := c.planWait(ctx); err != nil || c.phase == phaseRefused || c.isClient() {
		return err
	}
	return c.ask()
}

// find looks up the call's tool: how the call is reported depends on it even where its arguments cannot be
// read. A resolver that panics becomes the call's cause.
func (c *call) find() (found bool) {
	entry, found, err := lookUp(c.batch.executor.resolver, c.record.Function.Name)
	if err != nil {
		c.cause = err
	}
	if c.brought = c.brought && err == nil && !found; c.brought { // not if a tool is registered under the name by now
		entry, found = c.batch.brought[c.record.Function.Name]
	}
	if found {
		c.tool, c.entry = entry.Name, entry
	}
	return found
}

// unknown returns the message for an unknown tool. It names its replacement, or allowed tools with similar names.
func (c *call) unknown() string {
	name, n := c.record.Function.Name, suggestions
	type successor interface {
		Replacement(retired string) (name string, ok bool)
	} // as a [*registry.Registry] is
	if s, ok := c.batch.executor.resolver.(successor); ok {
		if instead, ok := s.Replacement(name); ok && c.batch.allows(instead) {
			return fmt.Sprintf("the tool %q is retired; call %s instead", sanitizeName(name), instead)
		}
	}
	if c.batch.allowed.began != nil {
		n = math.MaxInt // only some of the similar ones may be allowed
	}
	var near []string
	for _, candidate := range c.batch.executor.resolver.Nearest(name, n) {
		if len(near) < suggestions && c.batch.allows(candidate) {
			near = append(near, candidate)
		}
	}
	message := fmt.Sprintf("there is no tool %q", sanitizeName(name))
	if len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return message
}

// permitted refuses a call of a tool that the agent may not call or that is unavailable.
func (c *call) permitted() bool {
	switch {
	case c.brought:
		return true
	case !c.batch.allows(c.tool):
		c.refuseTool("allowed_tools", c.tool+notAllowed)
		return false
	}
	reason := c.entry.Unavailable()
	if reason != "" {
		c.refuseTool(availabilityPermission, "the tool is unavailable: "+reason)
	}
	return reason == ""
}

// sanitizeName makes a name that a model wrote safe to show. Registered names are unchanged.
func sanitizeName(name string) string { return tool.Shown(name, 64) }
