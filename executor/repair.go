package executor

import (
	"context"
	"log/slog"
	"slices"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// repairers holds what is known for the repair of each tool's arguments. It is safe for concurrent
// use. A nil one repairs nothing.
type repairers struct {
	tolerant bool
	made     made[*repair.Repairer]
}

func newRepairers(options Options) *repairers {
	if options.NoRepair {
		return nil
	}
	return &repairers{tolerant: options.TolerantJSON}
}

// of returns the repairer of a tool, which is made when the tool is first called.
func (r *repairers) of(ctx context.Context, m *manifests.Manifest) (*repair.Repairer, error) {
	return r.made.of(ctx, m, func() (*repair.Repairer, error) {
		return repair.New(context.WithoutCancel(ctx), m.Parameters, func(name string) bool {
			return slices.ContainsFunc(m.Context, func(owned string) bool { return passesFor(name, owned) })
		}), nil
	})
}

// parse reads the text of a call's arguments, which a model or a program wrote.
func (r *repairers) parse(text string, program bool) (tool.Arguments, []tool.Repair, error) {
	arguments, err := tool.ParseArguments(text)
	if err == nil || r == nil || program {
		return arguments, nil, err
	}
	if arguments, repairs, ok := repair.Text(text, r.tolerant); ok {
		return arguments, repairs, nil
	}
	return tool.Arguments{}, nil, err
}

// repair checks what the model wrote, together with the host's values, and repairs it
// where it does not fit. It returns the model's part and why that does not fit, if it does
// not; ok is false where the call's record is complete.
func (p planner) repair(ctx context.Context, c *call, entry registry.Entry, own tool.Arguments, values []contextValue) (result repair.Result, ok bool) {
	m := entry.Manifest
	check := func(arguments tool.Arguments) error {
		return validate(ctx, m.Parameters, complete(arguments, values))
	}
	if p.repairers == nil {
		return repair.Result{Arguments: own, Misfit: check(own)}, true
	}
	repairer, err := p.repairers.of(ctx, m)
	if err != nil {
		if !isTooLate(ctx, c) {
			c.refuse(tool.Internal, "")
			c.fail(err)
		}
		return repair.Result{}, false
	}
	if p.program {
		result = repairer.Fill(ctx, own, check)
	} else {
		result = repairer.Repair(ctx, own, []string{entry.Name, c.record.Function.Name}, check)
	}
	c.record.Repairs = append(c.record.Repairs, result.Repairs...)
	p.logRepairs(ctx, c)
	return result, true
}

// logRepairs says how much was repaired and by which rules. The values are in the record
// only.
func (p planner) logRepairs(ctx context.Context, c *call) {
	if len(c.record.Repairs) == 0 || !p.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	var rules []string
	for _, r := range c.record.Repairs {
		if !slices.Contains(rules, r.Rule) {
			rules = append(rules, r.Rule)
		}
	}
	p.log.InfoContext(ctx, "arguments repaired", "call_id", c.record.CallID, "tool", c.tool, "repairs", len(c.record.Repairs), "rules", rules)
}
