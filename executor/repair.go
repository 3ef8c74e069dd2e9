package executor

import (
	"context"
	"log/slog"
	"slices"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

// repairer returns the repairer of the call's tool. It is made at the tool's first call.
func (c *call) repairer(ctx context.Context) (*repair.Repairer, error) {
	m := c.entry.Manifest
	cache := &c.batch.executor.repairers
	if c.brought {
		cache = &c.batch.repairers
	}
	return cache.of(ctx, m, func() (*repair.Repairer, error) {
		return repair.New(context.WithoutCancel(ctx), m.Parameters, m.ParameterAliases, func(name string) bool {
			return slices.ContainsFunc(m.Context, func(owned string) bool { return passesFor(name, owned) })
		}), nil
	})
}

// parseObject parses arguments that are an object. Text that a program wrote is not repaired.
func (c *call) parseObject(text string) (tool.Arguments, error) {
	options := &c.batch.executor.options
	arguments, err := tool.ParseArguments(text)
	if err == nil || options.NoRepair || c.parent != nil {
		return arguments, err
	}
	arguments, repairs, ok := repair.Text(text, options.TolerantJSON)
	if !ok {
		return tool.Arguments{}, err
	}
	c.record.Repairs = repairs
	return arguments, nil
}

// rename gives arguments that are written under an alias the names of their parameters. It is no repair: the manifest
// declares these names, for programs as well.
func (c *call) rename(ctx context.Context, own tool.Arguments) (tool.Arguments, error) {
	arguments, changes, err := repair.Rename(ctx, own, c.entry.Manifest.ParameterAliases)
	if err == nil {
		c.record.Repairs = append(c.record.Repairs, changes...)
	}
	return arguments, err
}

// repair checks what the model wrote, together with the host's values, and repairs it where it does not fit. The
// result holds the model's part, and why that does not fit if it does not. The integers are those of the complete
// arguments, if they fit.
func (c *call) repair(ctx context.Context, own tool.Arguments, values []contextValue) (result repair.Result, integers schema.Integers, err error) {
	check := func(arguments tool.Arguments) (misfit error) {
		integers, misfit = c.entry.Manifest.Parameters.FindIntegers(ctx, complete(arguments, values))
		return misfit
	}
	if c.batch.executor.options.NoRepair {
		result = repair.Result{Arguments: own, Misfit: check(own)}
		return result, integers, nil
	}
	repairer, err := c.repairer(ctx)
	if err != nil {
		return repair.Result{}, schema.Integers{}, err
	}
	if c.parent != nil {
		result = repairer.Fill(ctx, own, check)
	} else {
		result = repairer.Repair(ctx, own, []string{c.tool, c.record.Function.Name}, check)
	}
	c.record.Repairs = append(c.record.Repairs, result.Repairs...)
	c.logRepairs(ctx)
	return result, integers, nil
}

// logRepairs logs how much was repaired and by which rules. The values are only in the record.
func (c *call) logRepairs(ctx context.Context) {
	log := c.batch.executor.log
	if len(c.record.Repairs) == 0 || !log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	var rules []string
	for _, r := range c.record.Repairs {
		if !slices.Contains(rules, r.Rule) {
			rules = append(rules, r.Rule)
		}
	}
	log.InfoContext(ctx, "arguments repaired", "call_id", c.record.CallID, "tool", c.tool, "repairs", len(c.record.Repairs), "rules", rules)
}
