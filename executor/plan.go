package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// suggestions is how many names an unknown name is answered with.
const suggestions = 3

// planner checks the calls of one batch and fills them in.
type planner struct {
	batch     *batch
	log       *slog.Logger
	repairers *repairers
	program   bool // it is a tool that makes the call, and not a model
	answered  bool // the client has run the call
}

func (b *batch) planner() planner {
	return planner{batch: b, log: b.executor.log, repairers: b.executor.repairers}
}

// plan makes a call ready to run, or completes its record with why it is not run.
func (b *batch) plan(ctx context.Context, requested tool.Call, id string, program bool) *call {
	p := b.planner()
	p.program = program
	return p.call(ctx, requested, id)
}

func (p planner) call(ctx context.Context, requested tool.Call, id string) (c *call) {
	requested.Type = or(requested.Type, tool.FunctionCall)
	c = &call{batch: p.batch, tool: clip(requested.Function.Name), record: tool.Record{Call: requested, CallID: id}}
	defer func() {
		if value := recover(); value != nil {
			c.refuseFailed(&panicError{value: value, stack: debug.Stack()})
		}
	}()
	entry, ok := p.batch.executor.resolver.Get(requested.Function.Name)
	if ok { // what is told of the call depends on its tool, also where its arguments cannot be read
		c.tool, c.entry = entry.Name, entry
	}
	arguments, repairs, err := p.parse(requested, entry)
	c.record.Repairs = repairs
	if err != nil {
		c.refuse(tool.InvalidArguments, err.Error())
		return c
	}
	if !ok {
		c.refuse(tool.UnknownTool, p.unknown(requested.Function.Name))
		return c
	}
	if entry.Manifest == nil || entry.Manifest.Parameters == nil {
		c.refuseFailed(fmt.Errorf("tool %s has no manifest or no schema that checks its arguments", entry.Name))
		return c
	}
	p.warnDeprecated(ctx, c, entry)
	if !p.permitted(c, entry) {
		return c
	}
	values, ok := p.contextValues(c, entry.Manifest, arguments)
	if !ok || isTooLate(ctx, c) {
		return c
	}
	repaired, ok := p.repair(ctx, c, entry, arguments, values)
	if !ok || isTooLate(ctx, c) {
		return c
	}
	if repaired.Misfit != nil {
		refuseMisfit(ctx, c, entry.Manifest, repaired.Arguments, repaired.Misfit)
		return c
	}
	c.readOnly = entry.Manifest.Behavior.ReadOnly
	c.invocation = tool.Invocation{
		CallID: id, Tool: entry.Name, Registration: entry.Registration, Arguments: complete(repaired.Arguments, values),
		// Each call has its own copy, so that no tool can change it for another.
		Context: maps.Clone(p.batch.session.context),
		Tenant:  p.batch.session.tenant,
		Session: p.batch.session.id,
		User:    p.batch.session.user,
		Files:   slices.Clone(p.batch.files),
		Trace:   p.batch.trace,
		Host:    c,
	}
	if p.waits(ctx, c, repaired.Arguments); c.phase == phaseRefused || c.isClient() {
		return c
	}
	if err := p.batch.ask(c); err != nil {
		c.refuseFailed(err)
	}
	return c
}

// isTooLate refuses a call whose time has ended: to check long arguments takes a while.
func isTooLate(ctx context.Context, c *call) bool {
	switch err := ctx.Err(); {
	case err != nil:
		c.refuse(notStarted(err))
	case isLate(ctx):
		c.refuse(notStarted(context.DeadlineExceeded))
	default:
		return false
	}
	return true
}

// unknown says that there is no such tool, and which of the allowed ones are near.
func (p planner) unknown(name string) string {
	n := suggestions
	if p.batch.allowed != nil {
		n = math.MaxInt // only some of those that are near may be allowed
	}
	var near []string
	for _, candidate := range p.batch.executor.resolver.Nearest(name, n) {
		if len(near) < suggestions && (p.batch.allowed == nil || p.batch.allowed[candidate]) {
			near = append(near, candidate)
		}
	}
	message := fmt.Sprintf("there is no tool %q", clip(name))
	if len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return message
}

func (p planner) warnDeprecated(ctx context.Context, c *call, entry registry.Entry) {
	if d := entry.Manifest.Deprecated; d != nil {
		p.log.WarnContext(ctx, "tool is deprecated", "call_id", c.record.CallID, "tool", entry.Name, "since", d.Since, "use", d.Use)
	}
}

// permitted refuses a call of a tool that the agent may not call or that cannot be used now.
func (p planner) permitted(c *call, entry registry.Entry) bool {
	denial := tool.Denial{Value: c.record.Function.Name}
	switch {
	case p.batch.allowed != nil && !p.batch.allowed[entry.Name]:
		denial.Permission = "allowed_tools"
		denial.Rule = fmt.Sprintf("%s is not among the tools that this agent may call", entry.Name)
	case entry.Unavailable != "":
		denial.Permission = "availability"
		denial.Rule = "the tool is unavailable: " + entry.Unavailable
	default:
		return true
	}
	c.refuse(tool.Denied, denial.Rule, denial)
	return false
}

// clip returns a name that a model wrote in a form that is safe to show. Registered names are as
// they are.
func clip(name string) string { return tool.Shown(name, 64) }

// parse reads what a call was written with: a JSON object, or the free text of a custom call. The
// entry is the zero value where there is no such tool. The error is worded for a model.
func (p planner) parse(requested tool.Call, entry registry.Entry) (tool.Arguments, []tool.Repair, error) {
	text := requested.Function.Arguments
	if requested.Type != tool.CustomCall {
		return p.repairers.parse(text, p.program)
	}
	if entry.Manifest == nil { // so that it is refused for that
		return tool.Arguments{}, nil, nil
	}
	if entry.Manifest.Type != manifests.CustomTool {
		return tool.Arguments{}, nil, fmt.Errorf("%w: %s takes a JSON object, and no free text", tool.ErrArguments, entry.Name)
	}
	arguments, err := freeText(entry.Manifest, text)
	return arguments, nil, err
}

// freeText makes arguments of a custom call's text: the tool's only parameter has it.
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
	var value bytes.Buffer
	encoder := json.NewEncoder(&value)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return tool.Arguments{}, fmt.Errorf("%w: %w", tool.ErrArguments, err)
	}
	return tool.Arguments{}.With(shown.Required[0], bytes.TrimRight(value.Bytes(), "\n")), nil
}

// made holds what is made of each tool's parameters, by registered name, when it is first needed. That
// takes longer than a call may be late where the schema is large: it is made once, apart from the calls,
// which leave when their time is over. The zero value is empty. It is safe for concurrent use.
type made[T any] struct {
	mu     sync.Mutex
	byTool map[string]*madeOf[T]
}

// madeOf goes with one schema: a tool that is loaded again has another one.
type madeOf[T any] struct {
	schema *schema.Schema
	done   chan struct{} // closed when the others are known
	value  T
	err    error
}

// of returns what was made for a tool, and starts making it the first time. The error may be that of
// a ctx that has ended.
func (a *made[T]) of(ctx context.Context, m *manifests.Manifest, do func() (T, error)) (T, error) {
	known := a.begin(m, do)
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
		known.err = apart(func() (err error) {
			known.value, err = do()
			return err
		})
	}()
	return known
}
