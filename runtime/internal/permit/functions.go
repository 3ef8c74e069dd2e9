package permit

import (
	"context"
	"time"

	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/tool"
)

// functionsPermit is which functions of the embedding program a tool may call. It is immutable.
type functionsPermit struct {
	allowed   map[string]int // the indexes of the grants
	decisions []tool.Decision
}

func decideFunctions(_ *Permit, o Options) (Enforcer, error) {
	m := o.Manifest
	if len(m.Permissions.Functions) == 0 {
		return nil, nil
	}
	rules := o.Grants.NameRules("functions", m.Permissions.Functions, o.Module)
	f := &functionsPermit{}
	f.decisions, f.allowed = rules.DecideNames(notNamed,
		func(name string) tool.Allow { return functionAllow(m.Name, name) })
	return f, nil
}

func functionAllow(toolName, name string) tool.Allow {
	return tool.Allow{Grant: manifests.Grants{Functions: []manifests.NameGrant{{Name: name}}}.Rule(toolName)}
}

// Decisions implements [Enforcer].
func (f *functionsPermit) Decisions() []tool.Decision { return f.decisions }

// functionsKey is the context key of a *FunctionCalls.
type functionsKey struct{}

// FunctionsOf returns the calls that the context of a host function belongs to, or false while a plug-in starts.
func FunctionsOf(ctx context.Context) (*FunctionCalls, bool) {
	calls, ok := ctx.Value(functionsKey{}).(*FunctionCalls)
	return calls, ok
}

const maxShown = 128 // bytes of a name that a record shows

// Open implements [Enforcer].
func (f *functionsPermit) Open(ctx context.Context, now func() time.Time) (context.Context, *journal.Journal) {
	called := &FunctionCalls{permit: f, now: now}
	return context.WithValue(ctx, functionsKey{}, called), &called.journal
}

// FunctionCalls are the calls of host functions of the embedding program that one call of a tool makes.
type FunctionCalls struct {
	permit  *functionsPermit
	now     func() time.Time
	journal journal.Journal
}

// Begin records a call of a function, and fails if it is denied.
func (c *FunctionCalls) Begin(name string) (journal.Entry, error) {
	call := tool.HostCall{Kind: "functions.call", Target: tool.Shown(name, maxShown), Began: c.now(), Allowed: true,
		Status: "unfinished"}
	if _, allowed := c.permit.allowed[name]; allowed {
		entry, _ := c.journal.Begin(call)
		return entry, nil
	}
	denial := tool.Denial{Permission: "functions", Value: name, Rule: "no grant lets this tool call it"}
	for _, d := range c.permit.decisions {
		if d.Requested == name {
			denial.Rule, denial.Allow = d.Reason, d.Allow
		}
	}
	call.Allowed, call.Status = false, "denied"
	c.journal.Begin(call)
	c.journal.Deny(denial, nil)
	return journal.Entry{}, &extism.Error{Message: "it called " + name + ", which is denied", Denial: &denial}
}

// Do calls a function and records how it ended, also if it panics.
func (c *FunctionCalls) Do(entry journal.Entry, call func() error) (err error) {
	began, status := c.now(), "failed"
	defer func() {
		c.journal.Change(entry, func(listed *tool.HostCall) { listed.Status, listed.Duration = status, c.now().Sub(began) })
	}()
	if err = call(); err == nil {
		status = "ok"
	}
	return err
}
