package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// suggestions is how many similar names an unknown one is answered with.
const suggestions = 3

// newCall returns a call that has yet to be planned.
func (b *batch) newCall(requested tool.Call, id string) *call {
	requested.Type = cmp.Or(requested.Type, tool.FunctionCall)
	return &call{batch: b, tool: clip(requested.Function.Name), record: tool.Record{Call: requested, CallID: id}}
}

// plan makes the call ready to run, or completes its record with why it is not run.
func (c *call) plan(ctx context.Context) {
	if err := c.tryPlan(ctx); err != nil {
		c.refuseFailed(err)
	}
}

// tryPlan is plan. The error is a failure of the host.
func (c *call) tryPlan(ctx context.Context) (err error) {
	defer catch(&err)
	found := c.find()
	if err := ctx.Err(); err != nil { // a batch may be long, and planning is work
		c.refuse(notStarted(err))
		return nil
	}
	if c.cause != nil {
		return c.cause
	}
	if c.record.Incomplete {
		c.refuse(tool.InvalidArguments, "the response was cut off within this call, so the call was not run; make it again, shorter if it is long")
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
		c.batch.executor.log.WarnContext(ctx, "tool is deprecated", "call_id", c.record.CallID, "tool", c.tool, "since", d.Since, "use", d.Use)
	}
	if !c.permitted() {
		return nil
	}
	values, ok := c.contextValues(arguments)
	if !ok || c.isTooLate(ctx) {
		return nil
	}
	arguments, err = c.rename(ctx, arguments)
	if c.isTooLate(ctx) {
		return nil
	}
	if err != nil {
		c.refuse(tool.InvalidArguments, err.Error())
		return nil
	}
	repaired, integers, err := c.repair(ctx, arguments, values)
	if c.isTooLate(ctx) {
		return nil
	}
	if err != nil {
		return err
	}
	if repaired.Misfit != nil {
		return c.refuseMisfit(ctx, repaired.Arguments, repaired.Misfit)
	}
	arguments, err = inDigits(complete(repaired.Arguments, values), integers)
	if err != nil {
		c.refuse(tool.InvalidArguments, err.Error())
		return nil
	}
	c.readOnly = m.Behavior.ReadOnly
	session := c.batch.session
	c.invocation = tool.Invocation{
		CallID: c.record.CallID, Tool: c.tool, Registration: c.entry.Registration, Arguments: arguments.Without(), // no longer parsed, which may take much memory
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
	if err == nil && !found && c.parent == nil {
		entry, found = c.batch.brought[c.record.Function.Name]
		c.brought = found
	}
	if found {
		c.tool, c.entry = entry.Name, entry
	}
	return found
}

// isTooLate refuses a call whose time has ended: checking long arguments takes a while.
func (c *call) isTooLate(ctx context.Context) bool {
	err := ended(ctx)
	if err != nil {
		c.refuse(notStarted(err))
	}
	return err != nil
}

// unknown says that there is no such tool, and which allowed one replaces it or has a similar name.
func (c *call) unknown() string {
	name, n := c.record.Function.Name, suggestions
	if s, ok := c.batch.executor.resolver.(Successor); ok {
		if instead, ok := s.Replacement(name); ok && c.batch.allows(instead) {
			return fmt.Sprintf("the tool %q is retired; call %s instead", clip(name), instead)
		}
	}
	if c.batch.allowed != nil {
		n = math.MaxInt // only some of the similar ones may be allowed
	}
	var near []string
	for _, candidate := range c.batch.executor.resolver.Nearest(name, n) {
		if len(near) < suggestions && c.batch.allows(candidate) {
			near = append(near, candidate)
		}
	}
	message := fmt.Sprintf("there is no tool %q", clip(name))
	if len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return message
}

// availabilityPermission is the permission in the denial of a call whose tool is unavailable.
const availabilityPermission = "availability"

// permitted refuses a call of a tool that the agent may not call or that is unavailable.
func (c *call) permitted() bool {
	denial := tool.Denial{Value: c.record.Function.Name}
	switch {
	case c.brought:
		return true
	case !c.batch.allows(c.tool):
		denial.Permission = "allowed_tools"
		denial.Rule = c.tool + " is not among the tools that this agent may call"
	default:
		reason := c.entry.Unavailable()
		if reason == "" {
			return true
		}
		denial.Permission = availabilityPermission
		denial.Rule = "the tool is unavailable: " + reason
	}
	c.refuse(tool.Denied, denial.Rule, denial)
	return false
}

// clip makes a name that a model wrote safe to show. Registered names are unchanged.
func clip(name string) string { return tool.Shown(name, 64) }

// parse reads the call's arguments: a JSON object, or the free text of a custom call. The error is worded for
// a model.
func (c *call) parse() (tool.Arguments, error) {
	text, m := c.record.Function.Arguments, c.entry.Manifest
	switch {
	case c.record.Type != tool.CustomCall:
		return c.parseObject(text)
	case m == nil: // plan refuses the call for that
		return tool.Arguments{}, nil
	case m.Type != tool.CustomCall:
		return tool.Arguments{}, fmt.Errorf("%w: %s takes a JSON object, and no free text", tool.ErrArguments, c.tool)
	}
	return freeText(m, text)
}

// freeText makes the text of a custom call the value of its tool's only parameter.
func freeText(m *manifests.Manifest, text string) (tool.Arguments, error) {
	if len(text) > tool.MaxArgumentsBytes {
		return tool.Arguments{}, fmt.Errorf("%w: %d bytes are over the limit of %d", tool.ErrArguments, len(text), tool.MaxArgumentsBytes)
	}
	if !utf8.ValidString(text) {
		return tool.Arguments{}, fmt.Errorf("%w: the text is not valid UTF-8", tool.ErrArguments)
	}
	var shown struct {
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(m.ModelParameters, &shown); err != nil || len(shown.Required) != 1 {
		return tool.Arguments{}, fmt.Errorf("%w: %s has no parameter for free text", tool.ErrArguments, m.Name)
	}
	return tool.Arguments{}.With(shown.Required[0], json.RawMessage(repair.Quote(text))), nil
}

// made caches a value per tool that is made from its parameters when first needed. For a large schema that
// takes longer than a call may be late, so it is made once, on a goroutine of its own, and calls stop waiting when
// their time is up. The zero value is empty. It is safe for concurrent use.
type made[T any] struct {
	mu     sync.Mutex
	byTool map[string]*madeOf[T]
}

// madeOf belongs to one schema: a tool that is loaded again has another.
type madeOf[T any] struct {
	schema *schema.Schema
	done   chan struct{} // closed when value and err are set
	value  T
	err    error
}

// of returns the tool's value, and starts making it the first time. The error may be that of ctx.
func (a *made[T]) of(ctx context.Context, m *manifests.Manifest, do func() (T, error)) (T, error) {
	known := a.begin(m, do)
	select {
	case <-known.done: // in all calls but the first, and found out faster if nothing else is waited for
		return known.value, known.err
	default:
	}
	select {
	case <-known.done:
		return known.value, known.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (a *made[T]) begin(m *manifests.Manifest, do func() (T, error)) *madeOf[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.byTool[m.Name]
	if known != nil && known.schema == m.Parameters {
		return known
	}
	known = &madeOf[T]{schema: m.Parameters, done: make(chan struct{})}
	if a.byTool == nil {
		a.byTool = map[string]*madeOf[T]{}
	}
	a.byTool[m.Name] = known
	go func() {
		defer close(known.done)
		known.value, known.err = apart(do)
	}()
	return known
}
