package executor

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// repairers holds what is known for the repair of each tool's arguments, by registered
// name. It is safe for concurrent use. A nil one repairs nothing.
type repairers struct {
	tolerant bool

	mu     sync.RWMutex
	byTool map[string]*toolRepairer
}

// toolRepairer goes with one schema: a tool that is loaded again has another one.
type toolRepairer struct {
	schema   *schema.Schema
	made     chan struct{} // closed when the others are known
	repairer *repair.Repairer
	err      error
}

func newRepairers(options Options) *repairers {
	if options.NoRepair {
		return nil
	}
	return &repairers{tolerant: options.TolerantJSON, byTool: map[string]*toolRepairer{}}
}

// of returns the repairer of a tool, which it makes when the tool is first called. That takes longer
// than a call may be late where the schema is large: it is made once, apart from the calls, which
// leave when their time is over.
func (r *repairers) of(ctx context.Context, m *manifests.Manifest) (*repair.Repairer, error) {
	known := r.begin(m)
	select {
	case <-known.made:
		return known.repairer, known.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin returns a tool's entry, and begins to fill it in if it is new.
func (r *repairers) begin(m *manifests.Manifest) *toolRepairer {
	r.mu.RLock()
	known := r.byTool[m.Name]
	r.mu.RUnlock()
	if known != nil && known.schema == m.Parameters {
		return known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known = r.byTool[m.Name]; known != nil && known.schema == m.Parameters {
		return known
	}
	known = &toolRepairer{schema: m.Parameters, made: make(chan struct{})}
	r.byTool[m.Name] = known
	go func() {
		defer close(known.made)
		known.err = apart(func() (err error) {
			known.repairer, err = repair.New(m.Parameters, func(name string) bool {
				return slices.ContainsFunc(m.Context, func(owned string) bool { return passesFor(name, owned) })
			})
			return err
		})
	}()
	return known
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
	switch {
	case err != nil:
	case p.program:
		result, err = repairer.Fill(ctx, own, check)
	default:
		result, err = repairer.Repair(ctx, own, []string{entry.Name, c.record.Function.Name}, check)
	}
	if err != nil {
		if !isTooLate(ctx, c) {
			c.refuse(tool.Internal, "")
			c.fail(err)
		}
		return repair.Result{}, false
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
